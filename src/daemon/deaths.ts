import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { logFolder } from "./start.ts";
import { objectIn, type DaemonStatus } from "./wire.ts";

/** How the daemon before this one has ended, if not in order: each leaves a file while it runs. */

interface Running {
  readonly pid: number;
  /** What was thrown and not caught. */
  readonly why?: string;
}

const KILLED = "it was killed without a word: by SIGKILL, or because memory was short";

export class DeathRecord {
  readonly #file: string;
  #last: DaemonStatus["lastDeath"];
  #hasBegun = false;

  constructor(stateFolder: string, name: string) {
    this.#file = join(logFolder(stateFolder), `daemon-${name}.running`);
  }

  get last(): DaemonStatus["lastDeath"] {
    return this.#last;
  }

  /** Called by the daemon that has the name: who left the file has ended. */
  async begin(): Promise<void> {
    await mkdir(join(this.#file, ".."), { recursive: true, mode: 0o700 });
    const former = runningIn(await readFile(this.#file, "utf8").catch(() => ""));
    const noticedAt = new Date().toISOString();
    this.#last = former && { pid: former.pid, noticedAt, why: former.why ?? KILLED };
    this.#hasBegun = true;
    await writeFile(this.#file, textOf({ pid: process.pid }), { mode: 0o600 });
  }

  /** At once: the process is about to end. */
  crashed(error: Error): void {
    try {
      writeFileSync(this.#file, textOf({ pid: process.pid, why: error.message.slice(0, MAX_WHY) }), { mode: 0o600 });
    } catch {
      // A full disk, or a deleted folder: its log has it all the same.
    }
  }

  /** Before `begin` the file is the record of the daemon that died, and stays. */
  async end(): Promise<void> {
    if (this.#hasBegun) await rm(this.#file, { force: true });
  }
}

const MAX_WHY = 300;

function textOf(running: Running): string {
  return JSON.stringify(running);
}

function runningIn(text: string): Running | undefined {
  try {
    const { pid, why } = objectIn(text);
    return typeof pid === "number" ? { pid, ...(typeof why === "string" && { why }) } : undefined;
  } catch {
    return undefined;
  }
}
