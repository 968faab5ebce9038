import { statSync } from "node:fs";

/**
 * Files of an open store: the database, its write-ahead log and the index of the log. If another program replaces one, SQLite
 * continues and reports success, and the data is lost.
 */
export class StoreFiles {
  readonly #file: string;
  readonly #log: string;
  /** Identities of the files, by path. */
  readonly #known: ReadonlyMap<string, string>;

  /** Call right after the database was opened and read for the first time, because then all files exist. */
  constructor(file: string) {
    this.#file = file;
    this.#log = `${file}-wal`;
    const beside = [this.#log, `${file}-shm`].filter((path) => readIdentity(path) !== NONE);
    this.#known = new Map([file, ...beside].map((path) => [path, readIdentity(path)]));
  }

  get areSame(): boolean {
    return this.#changed().length === 0;
  }

  /** True if the log or the index was replaced or deleted, and the database was not. */
  get lostLog(): boolean {
    const changed = this.#changed();
    return changed.length > 0 && !changed.includes(this.#file);
  }

  /** True if only the name of the log is gone: SQLite still has the log open, and can save its content. */
  get canSave(): boolean {
    return this.#changed().every((path) => path === this.#log);
  }

  #changed(): string[] {
    return [...this.#known].flatMap(([path, identity]) => (readIdentity(path) === identity ? [] : [path]));
  }
}

const NONE = "none";

function readIdentity(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found ? `${String(found.dev)} ${String(found.ino)}` : NONE;
}
