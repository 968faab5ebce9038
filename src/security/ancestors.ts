import { readFileSync } from "node:fs";
import { DEPTH_VARIABLE } from "../domain/names.ts";

/**
 * Whether this server was started from inside a session. A session's Claude Code carries its depth in the environment; a shell
 * can start us without that (`env -i`), but not from under another ancestor. Only Linux shows these.
 */

/** A chain that is longer is not ours to follow. */
const MAX_ANCESTORS = 64;

/** The greatest depth in the environments of the processes above `pid`; 0 where none has one, or where none can be read. */
export function depthAbove(pid: number): number {
  let depth = 0;
  let above = parentOf(pid);
  for (let count = 0; above > 1 && count < MAX_ANCESTORS; count += 1) {
    depth = Math.max(depth, depthOf(above));
    above = parentOf(above);
  }
  return depth;
}

function depthOf(pid: number): number {
  const beginning = `${DEPTH_VARIABLE}=`;
  const entry = textOf(`/proc/${String(pid)}/environ`)
    .split("\0")
    .find((each) => each.startsWith(beginning));
  const text = entry?.slice(beginning.length) ?? "";
  return depthOfText(text);
}

/** Of this process itself. */
export function depthIn(environment: Readonly<Record<string, string | undefined>>): number {
  return depthOfText(environment[DEPTH_VARIABLE] ?? "");
}

function depthOfText(text: string): number {
  // Any other value was set from inside a session.
  return /^\d{1,6}$/.test(text) ? Number(text) : Number(text !== "");
}

/** Behind the name of the program, which may hold anything, stand its state and its parent. */
function parentOf(pid: number): number {
  const stat = textOf(`/proc/${String(pid)}/stat`);
  const [, , parent = "0"] = stat.slice(stat.lastIndexOf(")") + 1).split(" ");
  return Number(parent);
}

/** "" where it is gone, or another user's. */
function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
