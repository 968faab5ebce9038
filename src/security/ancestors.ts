import { readFileSync } from "node:fs";
import { DEPTH_VARIABLE } from "../domain/names.ts";

/**
 * Detects a server that was started from inside a session. A session's Claude Code has `DEPTH_VARIABLE` in its environment; a
 * shell can start a server without the variable (`env -i`), but not from under another ancestor. Only Linux shows ancestors.
 */

/** Maximum number of ancestors to look at. */
const MAX_ANCESTORS = 64;

/** Returns the greatest depth in the environments of the processes above `pid`, or 0 if no depth can be read. */
export function depthAbove(pid: number): number {
  let depth = 0;
  let above = readParent(pid);
  for (let count = 0; above > 1 && count < MAX_ANCESTORS; count += 1) {
    depth = Math.max(depth, readDepth(above));
    above = readParent(above);
  }
  return depth;
}

function readDepth(pid: number): number {
  const beginning = `${DEPTH_VARIABLE}=`;
  const entry = readOrEmpty(`/proc/${String(pid)}/environ`)
    .split("\0")
    .find((each) => each.startsWith(beginning));
  const text = entry?.slice(beginning.length) ?? "";
  return parseDepth(text);
}

/** Returns the depth of this process. */
export function depthIn(environment: Readonly<Record<string, string | undefined>>): number {
  return parseDepth(environment[DEPTH_VARIABLE] ?? "");
}

function parseDepth(text: string): number {
  // Counts any other value as depth 1, because it was set inside a session.
  return /^\d{1,6}$/.test(text) ? Number(text) : Number(text !== "");
}

/** Returns the pid of the parent. Parses after the last `)`, because the name of the program may hold anything. */
function readParent(pid: number): number {
  const stat = readOrEmpty(`/proc/${String(pid)}/stat`);
  const [, , parent = "0"] = stat.slice(stat.lastIndexOf(")") + 1).split(" ");
  return Number(parent);
}

/** Returns an empty string for a process gone or of another user. */
function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
