import { changeByBytes, type FoundChange } from "./change.ts";
import { blobId, stampPaths } from "./disk.ts";
import type { DirtyPath, RawChange } from "./git-output.ts";
import { readBlobs, runGit, type GitRoot } from "./git-root.ts";
import type { Notes } from "./notes.ts";

/**
 * Checks what git has written to its index in a turn. A filter of one command (`git -c filter.x.clean=... add`) makes the index
 * claim that a changed file has its old content, and git then never reads the file again.
 */

/** Maximum number of files read, and maximum characters of paths given to one git. */
const [MAX_FILES, MAX_COMMAND] = [1_000, 24_000];
/** Time by which the clock of the disk may be behind, ms. */
export const TOLERANCE_MS = 50;

/** Terms of reading files. */
export interface Reading {
  /** Time on `performance.now()` at which to give up. */
  readonly until: number;
  readonly onRead?: (path: string, bytes: Buffer) => void;
  readonly notes: Notes;
}

/** Returns those of `written` (ids by path below the folder) whose content on disk is another. */
export async function findDoubted(
  root: GitRoot,
  written: ReadonlyMap<string, string>,
  { notes, onRead, until }: Reading,
): Promise<ReadonlyMap<string, string>> {
  const doubted = new Map<string, string>();
  if (written.size > MAX_FILES) {
    notes.miss(
      `${root.path}: git's index has ${String(written.size)} new entries, too many to compare with the files.`,
    );
    return doubted;
  }
  const others = new Map<string, string>();
  const seen = new Set<string>();
  await stampPaths({ root: root.path, until }, [...written.keys()], {
    onRead: (path, bytes) => {
      seen.add(path);
      const id = written.get(path) ?? "";
      if (blobId(bytes, id) === id) return;
      others.set(path, id);
      onRead?.(path, bytes);
    },
  });
  const unread = [...written.keys()].filter((path) => !seen.has(path));
  if (unread.length > 0) {
    notes.miss(`${root.path}: git's index has new entries for ${String(unread.length)} files that were not read.`);
  }
  // Line ends and the like: git converts the content first.
  const ids = await convertedIds(root, [...others.keys()]);
  for (const [path, id] of others) if (ids.get(path) !== id) doubted.set(path, id);
  return doubted;
}

/** Returns the ids that git gives to files. */
async function convertedIds(root: GitRoot, paths: readonly string[]): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  for (let at = 0; at < paths.length;) {
    let characters = 0;
    const some = paths.slice(at).filter((path) => (characters += path.length + 1) < MAX_COMMAND);
    const batch = some.length === 0 ? paths.slice(at, at + 1) : some;
    const output = await runGit(root, "hash-object", "--", ...batch);
    for (const [index, id] of output.split("\n").entries()) ids.set(batch[index] ?? "", id);
    at += batch.length;
  }
  return ids;
}

/** Compares files that git wrongly takes as unchanged with their old content. */
export async function doubtedChanges(
  doubted: readonly DirtyPath[],
  raw: readonly RawChange[],
  { fresh, root }: { readonly fresh: ReadonlyMap<string, Buffer>; readonly root: GitRoot },
): Promise<FoundChange[]> {
  if (doubted.length === 0) return [];
  const old = doubted.map(({ claimedId = "", path }) => {
    const change = raw.find((each) => each.path === path);
    return { path, id: change?.status === "A" ? undefined : (change?.oldId ?? claimedId) };
  });
  const ids = old.flatMap(({ id }) => id ?? []);
  const objects = await readBlobs(root, ids);
  return old.map(({ id, path }) =>
    changeByBytes(path, {
      hadFile: id !== undefined,
      hasFile: true,
      before: id === undefined ? undefined : objects.get(id),
      after: fresh.get(path),
    }),
  );
}
