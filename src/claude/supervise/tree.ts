import { type ChildProcess, execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { promisify } from "node:util";
import { isOutOfDescriptors } from "../../security/descriptors.ts";

/**
 * Process trees, because a Claude Code that is killed leaves its shells behind. A pid alone identifies no process (pids
 * are reused): a stored pid always comes with its start time.
 */

const run = promisify(execFile);

/** Time limit of `ps` and `taskkill`, ms. */
const LIST_MS = 10_000;

/** The output of `ps`; nothing where it finds no process. Rejects when it does not answer: a process that lives is not gone. */
export async function outputOfPs(args: readonly string[], maxBuffer?: number): Promise<string> {
  const limits = { timeout: LIST_MS, killSignal: "SIGKILL", ...(maxBuffer !== undefined && { maxBuffer }) } as const;
  try {
    // By its path: a spawn that looks a program up waits for every folder of PATH, and this whole process with it.
    return (await run("/bin/ps", args, limits)).stdout;
  } catch (error) {
    if (error instanceof Error && "killed" in error && error.killed === true) throw error;
    return "";
  }
}

/** Processes that are read in one batch; other work runs between batches. */
const AT_ONCE = 100;

export interface Entry {
  readonly pid: number;
  readonly parent: number;
  /** To put siblings into the order in which they began. */
  readonly started: number;
}

/**
 * When the process began, in whatever unit the system counts; undefined when there is no such process. Rejects where that
 * cannot be told for want of file descriptors, or because `ps` does not answer: a process that lives must not be taken for one that is gone.
 */
export async function startTime(pid: number): Promise<string | undefined> {
  if (process.platform === "linux") return statNow(pid)?.started;
  if (process.platform === "win32") return isAlive(pid) ? UNKNOWN : undefined;
  return (await outputOfPs(["-o", "lstart=", "-p", String(pid)])).trim() || undefined;
}

/** Start of a process where the system does not tell it: the pid has to do. */
export const UNKNOWN = "unknown";

/** Tells whether process `pid` is still the process that started at `startedAt`. */
export async function isRunning(pid: number, startedAt: string): Promise<boolean> {
  return startedAt === UNKNOWN ? isAlive(pid) : (await startTime(pid)) === startedAt;
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/**
 * Sends SIGKILL to the process and all its descendants, at once after they are listed. They are not stopped first: if the sender
 * died between a stop and a kill, stopped processes would stay forever. Processes started meanwhile are found by their tag.
 */
export async function killTree(pid: number): Promise<void> {
  if (process.platform === "win32") {
    await run("taskkill", ["/pid", String(pid), "/T", "/F"], { timeout: LIST_MS }).catch(() => undefined);
    return;
  }
  // Where the others cannot be seen at present, their tag finds them later.
  const all = await listProcesses().catch(() => []);
  for (const member of [pid, ...descendants(pid, all)]) signal(member, "SIGKILL");
}

/** A program that ends sooner was not killed, but cannot run, ms. */
const RUNS_MS = 1_000;

/** Calls `onDead` when the child has ended; `restart` says whether another one would run. What it throws waits for the next start. */
export function whenDead(child: ChildProcess, onDead: (restart: boolean) => void): void {
  const started = performance.now();
  child.once("exit", () => {
    try {
      onDead(performance.now() - started > RUNS_MS);
    } catch {
      // The system is out of descriptors.
    }
  });
}

/** Signals a process that may be gone already. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended by itself: what the signal was for.
  }
}

/** Parents before their children. A chain may be of any length, and a pid used twice while the list was made closes a circle. */
export function descendants(pid: number, all: readonly Entry[]): number[] {
  const children = new Map<number, number[]>();
  for (const { parent, pid: child } of all) {
    const siblings = children.get(parent);
    if (siblings) siblings.push(child);
    else children.set(parent, [child]);
  }
  const family = new Set([pid]);
  // What is added on the way is gone through as well.
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

/** With one file open at a time. Rejects where even that is too much: a list with gaps would hide who belongs to whom. */
export async function listProcesses(): Promise<Entry[]> {
  if (process.platform === "linux") {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    const found: Entry[] = [];
    for (let at = 0; at < pids.length; at += AT_ONCE) {
      found.push(...pids.slice(at, at + AT_ONCE).flatMap((pid) => entryOf(Number(pid)) ?? []));
      await breathe();
    }
    return found;
  }
  const listed = await outputOfPs(["-A", "-o", "pid=,ppid="]);
  return listed
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, parent]) => (pid !== undefined && parent !== undefined ? [{ pid, parent, started: pid }] : []));
}

/** A zombie: it has ended, but its parent has not waited for it. */
export function isZombie(pid: number): boolean {
  return process.platform === "linux" && statNow(pid) === undefined;
}

interface Stat {
  parent: number;
  started: string;
}

function entryOf(pid: number): Entry | undefined {
  const stat = statNow(pid);
  return stat && { pid, parent: stat.parent, started: Number(stat.started) };
}

/** At once: the kernel answers from memory, and each look at another server's session asks for it. */
function statNow(pid: number): Stat | undefined {
  try {
    return parsedStat(readFileSync(`/proc/${String(pid)}/stat`, "utf8"));
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return undefined;
  }
}

/** The fields after the name in parentheses; a zombie counts as gone. */
function parsedStat(text: string): Stat | undefined {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, parent] = fields;
  const started = fields[19];
  if (state === "Z" || state === "X" || parent === undefined || started === undefined) return undefined;
  return { parent: Number(parent), started };
}
