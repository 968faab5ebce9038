import { diffArrays } from "diff";

/** What becomes of each line of a text that is to be another. */

export interface Run {
  readonly kind: "same" | "added" | "removed";
  readonly lines: readonly string[];
}

/** Two long texts with nothing in common could be compared for minutes: then one is gone whole, the other come whole. */
const PATIENCE_MS = 300;

export function changedLines(before: string, after: string): Run[] {
  // A file that is new, or written whole, has no lines to be compared with.
  const isBothEnded = before === "" || (before.endsWith("\n") && after.endsWith("\n"));
  const [old, now] = [before, after].map((text) => linesOf(text, isBothEnded));
  const changes = diffArrays(old ?? [], now ?? [], { timeout: PATIENCE_MS });
  if (!changes) return [run("removed", old), run("added", now)];
  return changes.map(({ added, removed, value }) => run(added ? "added" : removed ? "removed" : "same", value));
}

function run(kind: Run["kind"], lines: readonly string[] = []): Run {
  return { kind, lines };
}

function linesOf(text: string, isEnded: boolean): string[] {
  if (text === "") return [];
  return (isEnded && text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}
