import { structuredPatch } from "diff";
import type { FileChange } from "../../domain/receipt.ts";
import type { ChangedText } from "./test-changes.ts";

/** Change of a path below a root. `texts` are for tests. */
export interface FoundChange {
  readonly path: string;
  readonly from?: string | undefined;
  readonly change: FileChange["change"];
  readonly lines?: [number, number] | undefined;
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

/** Returns the change of a path by its bytes. `hadFile` and `hasFile` tell if there was and is a file. */
export function changeByBytes(
  path: string,
  {
    after,
    before,
    hadFile,
    hasFile,
  }: { hadFile: boolean; hasFile: boolean; before?: Buffer | undefined; after?: Buffer | undefined },
): FoundChange {
  const [old, now] = [textOf(before), textOf(after)];
  const texts = { ...(old !== undefined && { before: old }), ...(now !== undefined && { after: now }) };
  if (!hadFile) return { path, change: "added", ...texts, lines: now === undefined ? undefined : [lineCount(now), 0] };
  if (!hasFile)
    return { path, change: "deleted", ...texts, lines: old === undefined ? undefined : [0, lineCount(old)] };
  const lines = old === undefined || now === undefined ? undefined : changedLines(old, now);
  return { path, change: "changed", ...texts, lines };
}

export const textsOf = (changes: readonly FoundChange[]): ChangedText[] =>
  changes.map(({ after, before, change, from, path }) => ({ path, from, change, before, after }));

/** Bytes at the beginning of a file that tell a binary one, as in git. */
const PROBED_BYTES = 8_000;
/** Limits of one comparison. A text that was written anew has no known lines beyond. */
const LIMITS = { context: 0, maxEditLength: 4_000, timeout: 200 };

function isBinary(bytes: Buffer): boolean {
  return bytes.subarray(0, PROBED_BYTES).includes(0);
}

/** Returns the text of a file, `undefined` for a binary one. */
export function textOf(bytes: Buffer | undefined): string | undefined {
  return bytes === undefined || isBinary(bytes) ? undefined : bytes.toString("utf8");
}

function lineCount(text: string): number {
  return text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

/** Returns numbers of lines added and removed; `undefined` if the comparison would take long. */
function changedLines(before: string, after: string): [number, number] | undefined {
  if (before === "") return [lineCount(after), 0];
  if (after === "") return [0, lineCount(before)];
  const patch = structuredPatch("", "", before, after, undefined, undefined, LIMITS);
  if (patch === undefined) return undefined;
  const lines: [number, number] = [0, 0];
  for (const line of patch.hunks.flatMap((hunk) => hunk.lines)) {
    if (line.startsWith("+")) lines[0] += 1;
    if (line.startsWith("-")) lines[1] += 1;
  }
  return lines;
}
