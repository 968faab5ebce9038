import { changeByBytes, type FoundChange } from "./change.ts";
import { stampPaths, type Disk } from "./disk.ts";
import type { Notes } from "./notes.ts";
import { ABSENT, isDoubtful, isSame, isUntouched, parseStamp } from "./stamp.ts";
import type { Stamps } from "./walks.ts";

/** Compares a folder outside git with its former stamps. Former contents are not kept, so that lines are not known. */

/** Maximum number of changes. */
const MAX_CHANGES = 5_000;

interface FilesComparison {
  readonly changes: FoundChange[];
  /** Stamps after, with the contents known from before. */
  readonly stamps: Stamps;
}

/** Rejects with a `LateError`. Returns a reason if there are too many changes. */
export async function compareFiles(
  disk: Disk,
  { earlier, later }: { readonly earlier: Stamps; readonly later: Stamps },
  notes: Notes,
): Promise<FilesComparison | string> {
  const paths = new Set([...earlier.keys(), ...later.keys()]);
  const stampsOf = (path: string) => [earlier.get(path) ?? ABSENT, later.get(path) ?? ABSENT] as const;
  const suspects = [...paths].filter((path) => isSuspect(...stampsOf(path)));
  if (suspects.length > MAX_CHANGES) return `more than ${String(MAX_CHANGES)} of its files have changed`;
  const fresh = new Map<string, Buffer>();
  const toRead = suspects.filter((path) => {
    const [before, now] = stampsOf(path);
    return now !== ABSENT && (before === ABSENT || parseStamp(before).content !== "");
  });
  const read = await stampPaths(disk, toRead, { onRead: (path, bytes) => void fresh.set(path, bytes) });
  const changes: FoundChange[] = [];
  let doubtful = 0;
  for (const path of suspects) {
    const [before, walked] = stampsOf(path);
    const now = read.get(path) ?? walked;
    if (isSame(before, now)) continue;
    if (isDoubtful(before, now)) doubtful += 1;
    changes.push(changeByBytes(path, { hadFile: before !== ABSENT, hasFile: now !== ABSENT, after: fresh.get(path) }));
  }
  if (doubtful > 0) notes.explain(`${disk.root}: ${String(doubtful)} files were compared by size and times only.`);
  const stamps = new Map(
    [...later].map(([path, walked]) => [path, read.get(path) ?? withContent(earlier.get(path), walked)]),
  );
  return { changes, stamps };
}

/** True for another stamp, and for a file that had changed so shortly before the look that a change need not show. */
function isSuspect(before: string, now: string): boolean {
  const { content, isRacy } = parseStamp(before);
  return !isSame(before, now) || (isRacy && content !== "");
}

/** Keeps the content that an untouched file had at the former look. */
function withContent(before: string | undefined, walked: string): string {
  return before !== undefined && isUntouched(before, walked) ? before : walked;
}
