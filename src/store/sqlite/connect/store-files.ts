import { statSync } from "node:fs";

/**
 * The files of an open store: the database, its write-ahead log and the index of that log. SQLite assumes that no other program
 * puts others in their places: otherwise it continues, reports success, and the data is lost.
 */
export class StoreFiles {
  readonly #file: string;
  readonly #log: string;
  /** What each of them was, by its path. */
  readonly #known: ReadonlyMap<string, string>;

  /** Right after the database was opened and read for the first time: then all of them are there. */
  constructor(file: string) {
    this.#file = file;
    this.#log = `${file}-wal`;
    const beside = [this.#log, `${file}-shm`].filter((path) => identityOf(path) !== NONE);
    this.#known = new Map([file, ...beside].map((path) => [path, identityOf(path)]));
  }

  get areSame(): boolean {
    return this.#changed().length === 0;
  }

  /** Whether the database is the one that was opened, and its log or index is not. */
  get lostLog(): boolean {
    const changed = this.#changed();
    return changed.length > 0 && !changed.includes(this.#file);
  }

  /** Whether only the log is gone by its name: then SQLite still has it, and can save what it holds. */
  get canSave(): boolean {
    return this.#changed().every((path) => path === this.#log);
  }

  #changed(): string[] {
    return [...this.#known].flatMap(([path, identity]) => (identityOf(path) === identity ? [] : [path]));
  }
}

const NONE = "none";

function identityOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found ? `${String(found.dev)} ${String(found.ino)}` : NONE;
}
