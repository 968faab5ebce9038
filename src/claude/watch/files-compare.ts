import { changeByBytes, type FoundChange } from "./change.ts";
import { stampPaths, type Disk } from "./disk.ts";
import type { Notes } from "./notes.ts";
import { ABSENT, isDoubtful, isSame, parseStamp } from "./stamp.ts";

/** Compares a folder outside git with its former stamps. Former contents are not kept, so that lines are not known. */

type Stamps = ReadonlyMap<string, string>;

/** Maximum number of changes. */
const MAX_CHANGES = 5_000;

/** Rejects with a `LateError`. Returns a reason if there are too many changes. */
export async function compareFiles(
  disk: Disk,
  { earlier, later }: { readonly earlier: Stamps; readonly later: Stamps },
  notes: Notes,
): Promise<FoundChange[] | string> {
  const paths = new Set([...earlier.keys(), ...later.keys()]);
  const stampsOf = (path: string) => [earlier.get(path) ?? ABSENT, later.get(path) ?? ABSENT] as const;
  const suspects = [...paths].filter((path) => !isSame(...stampsOf(path)));
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
  return changes;
}
