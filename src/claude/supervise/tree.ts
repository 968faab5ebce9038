import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";

/**
 * Process trees, because a Claude Code that is killed leaves its shells behind. A pid alone names nobody (pids are
 * reused): whoever remembers one remembers its start time as well.
 */

const run = promisify(execFile);

const PS_MAX = 64 * 1024 * 1024;

interface Entry {
  pid: number;
  parent: number;
}

/** When the process began, in whatever unit the system counts; undefined when there is no such process. */
export async function startTime(pid: number): Promise<string | undefined> {
  if (process.platform === "linux") return statNow(pid)?.started;
  if (process.platform === "win32") return isAlive(pid) ? "unknown" : undefined;
  const { stdout } = await run("ps", ["-o", "lstart=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  return stdout.trim() || undefined;
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** SIGKILL to the process and all its descendants, leaves last so that none is lost to a new parent meanwhile. */
export async function killTree(pid: number): Promise<void> {
  if (process.platform === "win32") {
    await run("taskkill", ["/pid", String(pid), "/T", "/F"]).catch(() => undefined);
    return;
  }
  signal(pid, "SIGSTOP");
  const family = descendants(pid, await listProcesses());
  for (const member of [pid, ...family]) signal(member, "SIGKILL");
}

/**
 * SIGKILL to every process that has `variable` ("NAME=value") in its environment: what a dead process has started,
 * wherever it stands in the tree by now. Nothing on Windows, where the environment of others cannot be read.
 */
export async function killMarked(variable: string): Promise<void> {
  for (const pid of await findMarked(variable)) signal(pid, "SIGKILL");
}

export async function findMarked(variable: string): Promise<number[]> {
  if (process.platform === "win32") return [];
  if (process.platform === "linux") {
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
    const marks = await Promise.all(pids.map(async (pid) => hasVariable(pid, variable)));
    return pids.filter((_, index) => marks[index]);
  }
  const { stdout } = await run("ps", ["-axEww", "-o", "pid=,command="], { maxBuffer: PS_MAX }).catch(() => ({
    stdout: "",
  }));
  const lines = stdout.split("\n").filter((line) => line.includes(` ${variable}`));
  return lines.map((line) => Number.parseInt(line, 10)).filter((pid) => pid > 0);
}

async function hasVariable(pid: number, variable: string): Promise<boolean> {
  // Those of other users cannot be read, and are not ours.
  const environment = await readFile(`/proc/${String(pid)}/environ`, "utf8").catch(() => "");
  return environment.split("\0").includes(variable);
}

/** Signals a process that may be gone already. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended by itself: what the signal was for.
  }
}

function descendants(pid: number, all: readonly Entry[]): number[] {
  const children = all.filter(({ parent }) => parent === pid).map((entry) => entry.pid);
  return children.flatMap((child) => [child, ...descendants(child, all)]);
}

async function listProcesses(): Promise<Entry[]> {
  if (process.platform === "linux") {
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
    const entries = await Promise.all(pids.map(async (pid) => ({ pid, stat: await statOf(pid) })));
    return entries.flatMap(({ pid, stat }) => (stat ? [{ pid, parent: stat.parent }] : []));
  }
  const { stdout } = await run("ps", ["-A", "-o", "pid=,ppid="]).catch(() => ({ stdout: "" }));
  return stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, parent]) => (pid !== undefined && parent !== undefined ? [{ pid, parent }] : []));
}

interface Stat {
  parent: number;
  started: string;
}

async function statOf(pid: number): Promise<Stat | undefined> {
  return parsedStat(await readFile(`/proc/${String(pid)}/stat`, "utf8").catch(() => ""));
}

/** At once: the kernel answers from memory, and each look at another server's session asks for it. */
function statNow(pid: number): Stat | undefined {
  try {
    return parsedStat(readFileSync(`/proc/${String(pid)}/stat`, "utf8"));
  } catch {
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
