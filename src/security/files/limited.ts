import type { Dirent, Stats } from "node:fs";
import * as fs from "node:fs/promises";
import { resolve, sep } from "node:path";
import { AppError } from "../../domain/error.ts";
import { findRemoteMount } from "./mounts.ts";

/**
 * Access to files by paths of clients, within a time limit. A folder of a dead server or of a frozen FUSE program never
 * answers, and an access holds a thread of this process until an answer comes. Sockets, timers and SQLite need no thread, but
 * all other files do.
 */

/** Number of threads for files: Node's own, unless the process was started with `UV_THREADPOOL_SIZE`. */
const THREADS = Number(process.env["UV_THREADPOOL_SIZE"]) || 4;

/** The timer ticks this many times within the time limit. A freeze of this process uses up at most one tick. */
const LIMIT_PARTS = 5;

/** Thrown if the file system has not answered, or is not asked because earlier accesses have no answer. */
export class NoAnswerError extends AppError {
  constructor(problem: string, field?: string) {
    super("TIMEOUT", field === undefined ? problem : `${field}: ${problem}`);
  }
}

/** `mount` is the mount point of the path, if another machine or program answers for the mount. */
interface FileAccess {
  readonly path: string;
  readonly mount: string | undefined;
}

interface WaitingAccess {
  readonly asked: FileAccess;
  readonly begin: () => void;
  readonly refuse: (error: NoAnswerError) => void;
}

interface Limits {
  /**
   * Maximum number of concurrent accesses, unanswered ones included: in total, and for one mount, or one path and everything
   * below.
   */
  readonly maxTotal: number;
  readonly maxPerPlace: number;
  /** Time limit of an access, ms. */
  readonly limitMs: number;
  readonly mountOf: (path: string) => Promise<string | undefined>;
}

export class LimitedAccess {
  /** Called when an access passes its time limit, with the paths of all unanswered accesses. */
  onStuck: (paths: readonly string[]) => void = () => undefined;
  readonly #limits: Limits;
  readonly #pending = new Set<FileAccess>();
  readonly #stuck = new Set<FileAccess>();
  #waiting: WaitingAccess[] = [];

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get isStuck(): boolean {
    return this.#stuck.size > 0;
  }

  /**
   * Resolves and rejects like `ask`. Throws `NoAnswerError` after the time limit, and at once for a path at or below an
   * unanswered path or while the maximum number of accesses is unanswered.
   */
  async run<T>(path: string, ask: () => Promise<T>): Promise<T> {
    const whole = resolve(path);
    const asked = { path: whole, mount: await this.#limits.mountOf(whole) };
    this.check(whole);
    if (this.#mayBegin(asked)) this.#pending.add(asked);
    else await new Promise<void>((begin, refuse) => this.#waiting.push({ asked, begin, refuse }));
    const running = ask();
    const end = () => this.#end(asked);
    running.then(end, end);
    return this.#within(asked, running);
  }

  /** Throws `NoAnswerError`, naming `field`, if `run` would refuse `path` at once. */
  check(path: string, field?: string): void {
    const problem = this.#findProblem(resolve(path));
    if (problem !== undefined) throw new NoAnswerError(problem, field);
  }

  /**
   * True if the access need not wait: there is room, and few running accesses could block it (on its mount, or at or above its
   * path). A waiting access is refused if these stay unanswered.
   */
  #mayBegin({ mount, path }: FileAccess): boolean {
    if (this.#pending.size >= this.#limits.maxTotal) return false;
    const mayBlock = (each: FileAccess) =>
      (mount !== undefined && each.mount === mount) || isAtOrBelow(path, each.path);
    return [...this.#pending].filter(mayBlock).length < this.#limits.maxPerPlace;
  }

  async #within<T>(asked: FileAccess, running: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_, reject) => {
      let parts = LIMIT_PARTS;
      timer = setInterval(() => {
        parts -= 1;
        if (parts > 0) return;
        this.#keepStuck(asked);
        reject(new NoAnswerError(this.#unanswered(asked.path)));
      }, this.#limits.limitMs / LIMIT_PARTS);
    });
    try {
      return await Promise.race([running, over]);
    } finally {
      clearInterval(timer);
    }
  }

  #keepStuck(asked: FileAccess): void {
    this.#stuck.add(asked);
    this.onStuck([...this.#stuck].map(({ path }) => path));
    this.#waiting = this.#waiting.filter(({ asked: { path }, refuse }) => {
      const problem = this.#findProblem(path);
      if (problem !== undefined) refuse(new NoAnswerError(problem));
      return problem === undefined;
    });
  }

  #end(asked: FileAccess): void {
    this.#pending.delete(asked);
    this.#stuck.delete(asked);
    for (;;) {
      const next = this.#waiting.findIndex((each) => this.#mayBegin(each.asked));
      const [found] = next < 0 ? [] : this.#waiting.splice(next, 1);
      if (!found) return;
      this.#pending.add(found.asked);
      found.begin();
    }
  }

  #findProblem(path: string): string | undefined {
    const { maxTotal, maxPerPlace } = this.#limits;
    const stuck = [...this.#stuck];
    const above = stuck.find((each) => isAtOrBelow(path, each.path))?.path;
    if (above !== undefined) return this.#unanswered(above);
    const mount = stuck.find((each) => each.mount !== undefined && isAtOrBelow(path, each.mount))?.mount;
    const onMount = stuck.filter((each) => mount !== undefined && each.mount === mount).length;
    if (mount !== undefined && onMount >= maxPerPlace) return this.#unanswered(mount);
    if (stuck.length < maxTotal) return undefined;
    // Leaves out the unanswered paths, which may belong to other users; the log names all.
    const problem = `${path} was not looked at: ${String(stuck.length)} other files or folders have not answered`;
    return `${problem}, which the log of the server names. Mount them again, or restart the server.`;
  }

  #unanswered(path: string): string {
    return `${path} has not answered within ${String(this.#limits.limitMs / 1000)} s: ${ADVICE}`;
  }
}

function isAtOrBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

const ADVICE = "a network folder may be gone, or a FUSE program frozen. Mount it again, or use another folder.";

/**
 * Maximum number of concurrent accesses: half of the threads, at most 8. The rest is for other files, name resolution and zlib.
 */
const MAX_ACCESSES = Math.max(1, Math.min(8, Math.floor(THREADS / 2)));

/** Limit for this process, because all accesses share the process's threads. */
export const fileAccess = new LimitedAccess({
  maxTotal: MAX_ACCESSES,
  maxPerPlace: Math.ceil(MAX_ACCESSES / 4),
  limitMs: 5_000,
  mountOf: findRemoteMount,
});

// Kills the process, because an exit waits for threads that may never end.
process.on("exit", () => fileAccess.isStuck && process.kill(process.pid, "SIGKILL"));

/**
 * For `catch`: returns `value` in place of an error about the file. Throws `NoAnswerError`, naming `field`, if there was no
 * answer.
 */
export function otherwise<T>(value: T, field?: string): (error: unknown) => T {
  return (error) => {
    if (error instanceof NoAnswerError) throw new NoAnswerError(error.message, field);
    return value;
  };
}

export async function access(path: string, mode?: number): Promise<void> {
  return fileAccess.run(path, async () => fs.access(path, mode));
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(() => true, otherwise(false));
}

export async function lstat(path: string): Promise<Stats> {
  return fileAccess.run(path, async () => fs.lstat(path));
}

export async function mkdir(path: string, options: { readonly recursive: true; readonly mode: number }): Promise<void> {
  return fileAccess.run(path, async () => void (await fs.mkdir(path, options)));
}

/** Closes a file that was opened only after the time limit. */
export async function open(path: string, flags: number): Promise<fs.FileHandle> {
  let opening: Promise<fs.FileHandle> | undefined;
  try {
    return await fileAccess.run(path, async () => (opening = fs.open(path, flags)));
  } catch (error) {
    opening?.then(async (handle) => handle.close()).catch(() => undefined);
    throw error;
  }
}

export async function readdir(path: string): Promise<Dirent[]> {
  return fileAccess.run(path, async () => fs.readdir(path, { withFileTypes: true }));
}

export async function readlink(path: string): Promise<string> {
  return fileAccess.run(path, async () => fs.readlink(path));
}

export async function realpath(path: string): Promise<string> {
  return fileAccess.run(path, async () => fs.realpath(path));
}

export async function stat(path: string): Promise<Stats> {
  return fileAccess.run(path, async () => fs.stat(path));
}
