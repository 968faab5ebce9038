import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { logFolder } from "./start-daemon.ts";
import { objectIn, type DaemonStatus } from "./wire.ts";

/**
 * Records of running daemons. Each daemon keeps a file `daemon-NAME.running.PID` while it runs. Leftover files tell the next
 * daemon of the name how its predecessors died, and let commands find daemons that do not answer.
 */

/** Identity of a process. `startedAt` guards against a reused `pid`. */
export interface ProcessId {
  readonly pid: number;
  readonly startedAt: string;
}

/** Resolves to true if process `pid` is still the process that started at `startedAt`. */
export type IsRunning = (pid: number, startedAt: string) => Promise<boolean>;

export interface DaemonOnFile extends ProcessId {
  readonly name: string;
}

interface RunningEntry extends DaemonOnFile {
  readonly file: string;
  /** Message of the uncaught error that ended the daemon. */
  readonly why?: string;
}

const KILLED = "it was killed without an error: by SIGKILL, or for lack of memory";

export class RunningFile {
  readonly #stateFolder: string;
  readonly #name: string;
  readonly #own: ProcessId;
  #last: DaemonStatus["lastDeath"];
  #hasBegun = false;

  constructor(stateFolder: string, name: string, own: ProcessId) {
    this.#stateFolder = stateFolder;
    this.#name = name;
    this.#own = own;
  }

  get lastDeath(): DaemonStatus["lastDeath"] {
    return this.#last;
  }

  /**
   * Called once the daemon has bound its name. Skips running daemons of the name: frozen daemons, and daemons without their
   * socket.
   */
  async begin(isRunning: IsRunning): Promise<void> {
    await mkdir(logFolder(this.#stateFolder), { recursive: true, mode: 0o700 });
    const noticedAt = new Date().toISOString();
    for (const { file, name, pid, startedAt, why = KILLED } of await readEntries(this.#stateFolder)) {
      if (name !== this.#name || (await isRunning(pid, startedAt))) continue;
      this.#last = { pid, noticedAt, why };
      await rm(file, { force: true });
    }
    this.#hasBegun = true;
    await writeFile(this.#file, this.#text(), { mode: 0o600 });
  }

  /** Writes synchronously, because the process is about to end. */
  noteCrash(error: Error): void {
    try {
      writeFileSync(this.#file, this.#text(error.message.slice(0, MAX_WHY)), { mode: 0o600 });
    } catch {
      // Disk full or folder deleted. The daemon's log still has the error.
    }
  }

  /** Removes the own record only. Records of dead daemons stay for the next `begin`. */
  async end(): Promise<void> {
    if (this.#hasBegun) await rm(this.#file, { force: true });
  }

  get #file(): string {
    return join(logFolder(this.#stateFolder), `daemon-${this.#name}.running.${String(this.#own.pid)}`);
  }

  #text(why?: string): string {
    return JSON.stringify({ ...this.#own, ...(why !== undefined && { why }) });
  }
}

const MAX_WHY = 300;

/** Lists running daemons of `stateFolder`, reachable or not. */
export async function daemonsOnFile(stateFolder: string, isRunning: IsRunning): Promise<DaemonOnFile[]> {
  const living = (await readEntries(stateFolder)).map(async ({ name, pid, startedAt }) =>
    (await isRunning(pid, startedAt)) ? [{ name, pid, startedAt }] : [],
  );
  return (await Promise.all(living)).flat();
}

/** Sorts entries by `mtimeMs`, oldest first. */
async function readEntries(stateFolder: string): Promise<RunningEntry[]> {
  const folder = logFolder(stateFolder);
  const found = (await readdir(folder).catch(() => [])).map(async (base) => {
    const [, name] = /^daemon-(.+)\.running\.\d+$/.exec(base) ?? [];
    const file = join(folder, base);
    const entry = name === undefined ? undefined : parseEntry(await readFile(file, "utf8").catch(() => ""));
    const { mtimeMs = 0 } = (entry && (await stat(file).catch(() => undefined))) ?? {};
    return entry && name !== undefined ? [{ ...entry, file, mtimeMs, name }] : [];
  });
  return (await Promise.all(found)).flat().toSorted((one, other) => one.mtimeMs - other.mtimeMs);
}

function parseEntry(text: string): Omit<RunningEntry, "file" | "name"> | undefined {
  try {
    const { pid, startedAt, why } = objectIn(text);
    if (typeof pid !== "number" || typeof startedAt !== "string") return undefined;
    return { pid, startedAt, ...(typeof why === "string" && { why }) };
  } catch {
    return undefined;
  }
}
