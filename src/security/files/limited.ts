import type { Dirent, Stats } from "node:fs";
import * as fs from "node:fs/promises";
import { resolve, sep } from "node:path";
import { AppError } from "../../domain/error.ts";

/**
 * Access to files by paths of clients, within a time limit. A folder of a dead server or of a frozen FUSE program never answers, and an
 * access to it holds a thread of this process until it does. Sockets, timers and SQLite need no thread, but all other files do.
 */

/** Threads for files: Node's own number, unless the process was started with another. */
const THREADS = Number(process.env["UV_THREADPOOL_SIZE"]) || 4;

/** Parts in which the time limit is counted: a freeze of this process uses up one of them. */
const PARTS = 5;

/** Thrown where the file system has not answered, or is not asked because earlier questions have no answer. */
export class NoAnswerError extends AppError {
  constructor(problem: string, field?: string) {
    super("TIMEOUT", field === undefined ? problem : `${field}: ${problem}`);
  }
}

interface Waiting {
  readonly path: string;
  readonly begin: () => void;
  readonly refuse: (error: NoAnswerError) => void;
}

/** `most` accesses at a time, those without an answer included; `limitMs` is the time limit of each. */
interface Limits {
  readonly most: number;
  readonly limitMs: number;
}

export class LimitedAccess {
  /** Called with the paths without an answer when there is one more. */
  onStuck: (paths: readonly string[]) => void = () => undefined;
  readonly #limits: Limits;
  #pending = 0;
  readonly #stuck: string[] = [];
  #waiting: Waiting[] = [];

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get isStuck(): boolean {
    return this.#stuck.length > 0;
  }

  /**
   * Resolves and rejects as `ask` does. Throws `NoAnswerError` after the time limit, and at once for a path at or below one that has
   * not answered, or while as many as may run have not answered.
   */
  async run<T>(path: string, ask: () => Promise<T>): Promise<T> {
    const whole = resolve(path);
    this.check(path);
    if (this.#pending < this.#limits.most) this.#pending += 1;
    else await new Promise<void>((begin, refuse) => this.#waiting.push({ path: whole, begin, refuse }));
    const running = ask();
    const end = () => this.#end();
    running.then(end, end);
    return this.#within(whole, running);
  }

  /** Throws `NoAnswerError`, which names `field`, where `path` would not be looked at. */
  check(path: string, field?: string): void {
    const problem = this.#problemOf(resolve(path));
    if (problem !== undefined) throw new NoAnswerError(problem, field);
  }

  async #within<T>(path: string, running: Promise<T>): Promise<T> {
    const { limitMs } = this.#limits;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_, reject) => {
      let parts = PARTS;
      timer = setInterval(() => {
        parts -= 1;
        if (parts > 0) return;
        this.#keepStuck(path, running);
        reject(new NoAnswerError(`${path} did not answer within ${String(limitMs / 1000)} s: ${ADVICE}`));
      }, limitMs / PARTS);
    });
    try {
      return await Promise.race([running, over]);
    } finally {
      clearInterval(timer);
    }
  }

  #keepStuck(path: string, running: Promise<unknown>): void {
    this.#stuck.push(path);
    this.onStuck(this.#stuck);
    const forget = () => this.#stuck.splice(this.#stuck.indexOf(path), 1);
    running.then(forget, forget);
    this.#waiting = this.#waiting.filter((each) => {
      const problem = this.#problemOf(each.path);
      if (problem !== undefined) each.refuse(new NoAnswerError(problem));
      return problem === undefined;
    });
  }

  /** Passes its place on. */
  #end(): void {
    const next = this.#waiting.shift();
    if (next) next.begin();
    else this.#pending -= 1;
  }

  #problemOf(path: string): string | undefined {
    const above = this.#stuck.find((each) => path === each || path.startsWith(each.endsWith(sep) ? each : each + sep));
    if (above !== undefined) return `${above} has still not answered: ${ADVICE}`;
    if (this.#stuck.length < this.#limits.most) return undefined;
    // Their paths may be other users': the log has them.
    const problem = `${path} was not looked at: ${String(this.#stuck.length)} other files or folders have not answered`;
    return `${problem}, which the log of the server names. Mount them again, or restart the server.`;
  }
}

const ADVICE = "a network folder may be gone, or a FUSE program frozen. Mount it again, or use another folder.";

/** Of this process. Half of its threads are left to other files, names in the network and zlib. */
export const files = new LimitedAccess({ most: Math.max(1, Math.min(8, Math.floor(THREADS / 2))), limitMs: 5_000 });

// An exit waits for its threads, and these may never end.
process.on("exit", () => files.isStuck && process.kill(process.pid, "SIGKILL"));

/** For `catch`: `value` in place of an error about the file. Throws where there was no answer, naming `field`. */
export function otherwise<T>(value: T, field?: string): (error: unknown) => T {
  return (error) => {
    if (error instanceof NoAnswerError) throw new NoAnswerError(error.message, field);
    return value;
  };
}

export async function access(path: string, mode?: number): Promise<void> {
  return files.run(path, async () => fs.access(path, mode));
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(() => true, otherwise(false));
}

export async function lstat(path: string): Promise<Stats> {
  return files.run(path, async () => fs.lstat(path));
}

export async function mkdir(path: string, options: { readonly recursive: true; readonly mode: number }): Promise<void> {
  return files.run(path, async () => void (await fs.mkdir(path, options)));
}

/** Closes what is opened too late. */
export async function open(path: string, flags: number): Promise<fs.FileHandle> {
  let opening: Promise<fs.FileHandle> | undefined;
  try {
    return await files.run(path, async () => (opening = fs.open(path, flags)));
  } catch (error) {
    opening?.then(async (handle) => handle.close()).catch(() => undefined);
    throw error;
  }
}

export async function readdir(path: string): Promise<Dirent[]> {
  return files.run(path, async () => fs.readdir(path, { withFileTypes: true }));
}

export async function readlink(path: string): Promise<string> {
  return files.run(path, async () => fs.readlink(path));
}

export async function realpath(path: string): Promise<string> {
  return files.run(path, async () => fs.realpath(path));
}

export async function stat(path: string): Promise<Stats> {
  return files.run(path, async () => fs.stat(path));
}
