import { type ChildProcess, execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { promisify } from "node:util";
import { isOutOfDescriptors } from "../../security/descriptors.ts";

/**
 * Lists and kills process trees, because a killed Claude Code leaves its shells behind. A pid alone identifies no process (pids
 * are reused): a stored pid always comes with its start time.
 */

const run = promisify(execFile);

/** Time limit of `ps` and `taskkill`, ms. */
const LIST_MS = 10_000;

/**
 * Returns the output of `ps`, "" if no process matches. Rejects if `ps` does not answer, because a living process must not
 * count as gone.
 */
export async function runPs(args: readonly string[], maxBuffer?: number): Promise<string> {
  const limits = { timeout: LIST_MS, killSignal: "SIGKILL", ...(maxBuffer !== undefined && { maxBuffer }) } as const;
  try {
    // Absolute path, because a lookup in `PATH` blocks this whole process for every folder.
    return (await run("/bin/ps", args, limits)).stdout;
  } catch (error) {
    if (error instanceof Error && "killed" in error && error.killed === true) throw error;
    return "";
  }
}

/** Processes per batch. The event loop runs between batches. */
const AT_ONCE = 100;

export interface Entry {
  readonly pid: number;
  readonly parent: number;
  /** Sort key for siblings: start time on Linux, otherwise the pid. */
  readonly started: number;
}

/**
 * Start time in a unit of the system; `undefined` for a zombie, or if there is no such process. Rejects if file descriptors run
 * out or `ps` does not answer, because a living process must not count as gone.
 */
export async function startTime(pid: number): Promise<string | undefined> {
  if (process.platform === "linux") return readStat(pid)?.started;
  if (process.platform === "win32") return isAlive(pid) ? UNKNOWN_START : undefined;
  return (await runPs(["-o", "lstart=", "-p", String(pid)])).trim() || undefined;
}

/** Returned by `startTime` for every living process on Windows, where the pid alone must identify the process. */
export const UNKNOWN_START = "unknown";

/** True if `pid` is still the process started at `startedAt`. */
export async function isRunning(pid: number, startedAt: string): Promise<boolean> {
  return startedAt === UNKNOWN_START ? isAlive(pid) : (await startTime(pid)) === startedAt;
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/**
 * Sends `SIGKILL` to the process and all descendants right after listing. Sends no `SIGSTOP` before: if the sender died in
 * between, stopped processes would stay forever. Processes started meanwhile are found by their tag.
 */
export async function killTree(pid: number): Promise<void> {
  if (process.platform === "win32") {
    await run("taskkill", ["/pid", String(pid), "/T", "/F"], { timeout: LIST_MS }).catch(() => undefined);
    return;
  }
  // If the list fails, descendants are found by their tag later.
  const all = await listProcesses().catch(() => []);
  for (const member of [pid, ...descendants(pid, all)]) signal(member, "SIGKILL");
}

/**
 * Minimum lifetime of a working program, ms. A program that ends sooner was not killed, but cannot run, and would end again.
 */
const RUNS_MS = 1_000;

/**
 * Calls `onDead` after the child has ended. `restart` is false if another child would end at once, too. Ignores an error thrown
 * by `onDead`: the next start of the child meets the cause again.
 */
export function whenDead(child: ChildProcess, onDead: (restart: boolean) => void): void {
  const started = performance.now();
  child.once("exit", () => {
    try {
      onDead(performance.now() - started > RUNS_MS);
    } catch {
      // Out of file descriptors.
    }
  });
}

/** Sends the signal `name`; a no-op if the process has ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Ended already.
  }
}

/**
 * Returns parents before children. Loops instead of recursing, because chains have any length; collects a set, because a pid
 * reused during the listing closes a circle.
 */
export function descendants(pid: number, all: readonly Entry[]): number[] {
  const children = new Map<number, number[]>();
  for (const { parent, pid: child } of all) {
    const siblings = children.get(parent);
    if (siblings) siblings.push(child);
    else children.set(parent, [child]);
  }
  const family = new Set([pid]);
  // The loop also visits members added on the way.
  for (const member of family) for (const child of children.get(member) ?? []) family.add(child);
  family.delete(pid);
  return [...family];
}

export function ancestors(pid: number, all: readonly Entry[]): number[] {
  const parents = new Map(all.map((entry) => [entry.pid, entry.parent]));
  const line = new Set([pid]);
  for (const member of line) {
    const parent = parents.get(member);
    if (parent !== undefined) line.add(parent);
  }
  line.delete(pid);
  return [...line];
}

/** Opens one file at a time. Rejects if file descriptors run out nevertheless, because gaps would hide descendants. */
export async function listProcesses(): Promise<Entry[]> {
  if (process.platform === "linux") {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    const found: Entry[] = [];
    for (let at = 0; at < pids.length; at += AT_ONCE) {
      found.push(...pids.slice(at, at + AT_ONCE).flatMap((pid) => readEntry(Number(pid)) ?? []));
      await breathe();
    }
    return found;
  }
  const listed = await runPs(["-A", "-o", "pid=,ppid="]);
  return listed
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, parent]) => (pid !== undefined && parent !== undefined ? [{ pid, parent, started: pid }] : []));
}

/** True if the process has ended: gone, or a zombie whose parent has not waited for the exit. Always false outside Linux. */
export function isZombie(pid: number): boolean {
  return process.platform === "linux" && readStat(pid) === undefined;
}

interface Stat {
  parent: number;
  started: string;
}

function readEntry(pid: number): Entry | undefined {
  const stat = readStat(pid);
  return stat && { pid, parent: stat.parent, started: Number(stat.started) };
}

/** Reads synchronously, because the kernel answers from memory and each look at another server's session needs `stat`. */
function readStat(pid: number): Stat | undefined {
  try {
    return parseStat(readFileSync(`/proc/${String(pid)}/stat`, "utf8"));
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return undefined;
  }
}

/** Parses the fields after the name in parentheses. A zombie counts as gone. */
function parseStat(text: string): Stat | undefined {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, parent] = fields;
  const started = fields[19];
  if (state === "Z" || state === "X" || parent === undefined || started === undefined) return undefined;
  return { parent: Number(parent), started };
}
