import { readdirSync, readFileSync } from "node:fs";

/** All processes below this one, by parent, as clients find what they end with themselves. */
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
    // It ended while we looked.
    return [];
  }
}

/** The children of a process whose command line has `program` in it. */
export function childrenRunning(pid: number, program: string): number[] {
  return childrenOf(pid).filter((child) => commandOf(child).includes(program));
}

/** What its main thread has started; nothing once the process has ended. */
export function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, "utf8").trim();
    return children === "" ? [] : children.split(" ").map(Number);
  } catch {
    return [];
  }
}

/** Its words end in NUL; nothing once the process has ended. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${String(pid)}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
