import type { FolderState } from "../../domain/receipt.ts";
import type { CopySet } from "./copies.ts";
import { compareFiles } from "./files-compare.ts";
import { compareGit, compareHeads, type GitComparison } from "./git-compare.ts";
import type { Notes } from "./notes.ts";
import type { RootLook } from "./root-look.ts";
import { within } from "./within.ts";

/** Compares one folder of a session with its former state. */

interface Former {
  readonly before: FolderState | undefined;
  /** Former stamps of a folder outside git. */
  readonly stamps: ReadonlyMap<string, string> | undefined;
  readonly copies: CopySet | undefined;
  readonly fresh: Map<string, Buffer>;
  readonly since: number | undefined;
  readonly until: number;
  readonly notes: Notes;
}

/** Resolves to `undefined` if the folder could not be compared, as the notes say. Never rejects. */
export async function compareRoot(seen: RootLook, former: Former): Promise<GitComparison | undefined> {
  const late = "it has not answered in time.";
  const compared = compareSeen(seen, former).catch(
    (error: unknown) => `${error instanceof Error ? error.message : String(error)}.`,
  );
  const found = await within(compared, former.until - performance.now(), late);
  if (typeof found !== "string") return found;
  former.notes.miss(`${seen.root.path} could not be compared: ${found}`);
  return compareWithoutFiles(seen, former);
}

/** Compares what a work tree with too many dirty files still tells: commits, and git's configuration. */
async function compareWithoutFiles({ git, state }: RootLook, former: Former): Promise<GitComparison | undefined> {
  const { before } = former;
  const isKnown = before?.gitFiles !== undefined && state.gitFiles !== undefined && git !== undefined;
  if (!isKnown) return undefined;
  const heads = compareHeads({ ...former, before, root: git.root, look: git });
  const found = await within(heads, former.until - performance.now(), undefined);
  return found && { ...found, isPartial: true };
}

/** Resolves to a reason, as a sentence, if the folder cannot be compared. */
async function compareSeen(seen: RootLook, former: Former): Promise<GitComparison | string> {
  const { git, root, state } = seen;
  const before = former.before ?? madeBefore(seen);
  if (!before) return "it was no folder of the session before the turn.";
  if (before.kind === "unseen") return before.why ?? "it was not looked at before the turn.";
  if (state.kind === "unseen") return state.why ?? "it cannot be looked at.";
  if (before.kind !== state.kind) return "its repository has come or gone during the turn.";
  if (git) return compareGit({ ...former, before, root: git.root, look: git });
  const [earlier, later] = [former.stamps, seen.stamps];
  if (!earlier || !later) return "this server does not have the list of its files before the turn.";
  const changes = await compareFiles({ root: root.path, until: former.until }, { earlier, later }, former.notes);
  return typeof changes === "string" ? `${changes}.` : { changes, commits: [], gitFiles: [] };
}

/** A worktree that was made during the turn begins as the commit that it was made from. */
function madeBefore({ root, state }: RootLook): FolderState | undefined {
  if ("closed" in root || root.madeFrom === undefined) return undefined;
  return { ...state, kind: "git", head: root.madeFrom, files: {} };
}
