import { diffArrays, structuredPatch } from "diff";
import type { JsonObject } from "../../../src/domain/json.ts";
import { isObject, numberAt, objectsAt } from "./json.ts";

/** Turns changes of a file into lines to show. */

export interface Hunk {
  readonly oldStart: number;
  readonly newStart: number;
  /** Each line begins with " ", "+" or "-". */
  readonly lines: readonly string[];
}

export interface DiffLine {
  readonly kind: "same" | "added" | "removed" | "gap";
  readonly text: string;
  readonly oldNumber?: number;
  readonly newNumber?: number;
}

/**
 * Above `MAX_EDITS` changed lines or `MAX_LENGTH` characters, all lines count as removed and added, because the shortest diff
 * of huge texts takes long.
 */
const MAX_EDITS = 1_000;
const MAX_LENGTH = 200_000;

export function hunksBetween(before: string, after: string): readonly Hunk[] {
  const isLong = before.length + after.length > MAX_LENGTH;
  const patch = isLong
    ? undefined
    : structuredPatch("", "", before, after, undefined, undefined, { context: 3, maxEditLength: MAX_EDITS });
  return patch
    ? patch.hunks.map(({ lines, newStart, oldStart }) => ({ oldStart, newStart, lines }))
    : replaceAllLines(before, after);
}

function replaceAllLines(before: string, after: string): readonly Hunk[] {
  const marked = (text: string, sign: string) => (text === "" ? [] : linesOf(text).map((line) => sign + line));
  return [{ oldStart: 1, newStart: 1, lines: [...marked(before, "-"), ...marked(after, "+")] }];
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, "").split("\n");
}

/** Hunks that a tool of Claude Code reports in `structuredPatch`; `undefined` if there are none. */
export function hunksReported(output: JsonObject | undefined): readonly Hunk[] | undefined {
  const reported = output ? objectsAt(output, "structuredPatch") : [];
  const hunks = reported.flatMap((hunk) => {
    const lines: unknown = hunk["lines"];
    if (!isObject(hunk) || !Array.isArray(lines)) return [];
    const texts = lines.filter((line): line is string => typeof line === "string");
    return [{ oldStart: numberAt(hunk, "oldStart") ?? 1, newStart: numberAt(hunk, "newStart") ?? 1, lines: texts }];
  });
  return hunks.length === 0 ? undefined : hunks;
}

/**
 * Set `numbered` if `hunks` count lines from the beginning of the file. Otherwise they cover an unknown part of the file, and
 * line numbers are left out.
 */
export function linesToShow(hunks: readonly Hunk[], numbered: boolean): readonly DiffLine[] {
  return hunks.flatMap((hunk, at): DiffLine[] => [
    ...(at === 0 ? [] : [{ kind: "gap" as const, text: "" }]),
    ...linesOfHunk(hunk, numbered),
  ]);
}

function linesOfHunk({ lines, newStart, oldStart }: Hunk, numbered: boolean): DiffLine[] {
  let [oldNumber, newNumber] = [oldStart, newStart];
  return lines.flatMap((line): DiffLine[] => {
    const text = line.slice(1);
    const sign = line[0];
    // Skips "\ No newline at end of file".
    if (sign === "\\") return [];
    if (sign === "+") return [{ kind: "added", text, ...(numbered && { newNumber: newNumber++ }) }];
    if (sign === "-") return [{ kind: "removed", text, ...(numbered && { oldNumber: oldNumber++ }) }];
    return [{ kind: "same", text, ...(numbered && { oldNumber: oldNumber++, newNumber: newNumber++ }) }];
  });
}

export function countChanges(lines: readonly DiffLine[]): { readonly added: number; readonly removed: number } {
  const count = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  return { added: count("added"), removed: count("removed") };
}

/** Consecutive lines of a whole text with equal `kind`. */
export interface LineRun {
  readonly kind: "same" | "added" | "removed";
  readonly lines: readonly string[];
}

/**
 * Time limit for a comparison, ms; after that all lines count as removed and added. Two long, unrelated texts could take
 * minutes.
 */
const COMPARE_TIMEOUT_MS = 300;

export function changedLines(before: string, after: string): LineRun[] {
  // A final newline is no change in a new file, or if both texts end with a newline.
  const ignoresFinalNewline = before === "" || (before.endsWith("\n") && after.endsWith("\n"));
  const [old, now] = [before, after].map((text) => splitLines(text, ignoresFinalNewline));
  const changes = diffArrays(old ?? [], now ?? [], { timeout: COMPARE_TIMEOUT_MS });
  if (!changes) return [run("removed", old), run("added", now)];
  return changes.map(({ added, removed, value }) => run(added ? "added" : removed ? "removed" : "same", value));
}

function run(kind: LineRun["kind"], lines: readonly string[] = []): LineRun {
  return { kind, lines };
}

function splitLines(text: string, ignoresFinalNewline: boolean): string[] {
  if (text === "") return [];
  return (ignoresFinalNewline && text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}
