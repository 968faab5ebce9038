import { readdirSync, readFileSync } from "node:fs";

/** Returns all descendants of `pid`, found by parent pid, as clients find the processes to end with their server. */
export function descendantsOf(pid: number): number[] {
  const parents = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? parentOf(name) : []));
  const below = (of: number): number[] =>
    parents.flatMap(([child, parent]) => (parent === of ? [child, ...below(child)] : []));
  return below(pid);
}

function parentOf(pid: string): [number, number][] {
  try {
    const [, parent] = / \S (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/s, "")) ?? [];
    return [[Number(pid), Number(parent)]];
  } catch {
    // The process ended meanwhile.
    return [];
  }
}

/** Returns the children of a process whose command line contains `program`. */
export function childrenRunning(pid: number, program: string): number[] {
  return childrenOf(pid).filter((child) => commandOf(child).includes(program));
}

/** Returns the children started by the main thread; [] once the process has ended. */
export function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, "utf8").trim();
    return children === "" ? [] : children.split(" ").map(Number);
  } catch {
    return [];
  }
}

/** Returns the arguments, each ended by NUL; "" once the process has ended. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${String(pid)}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
