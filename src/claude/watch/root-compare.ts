import type { FolderState } from "../../domain/receipt.ts";
import type { CopySet } from "./copies.ts";
import { commitsBetween } from "./commits.ts";
import { compareFiles } from "./files-compare.ts";
import { compareGit, compareHeads, type GitComparison } from "./git-compare.ts";
import type { Notes } from "./notes.ts";
import type { RootLook } from "./root-look.ts";
import type { Stamps } from "./walks.ts";
import { within } from "./within.ts";

/** Compares one folder of a session with its former state. */

interface Former {
  readonly before: FolderState | undefined;
  /** Former stamps of a folder outside git. */
  readonly stamps: Stamps | undefined;
  /** Lists the files of the folder as outside git. */
  readonly walk: () => Promise<Stamps | string>;
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
  const { git, state } = seen;
  const before = former.before ?? madeBefore(seen);
  if (!before) return "it was no folder of the session before the turn.";
  if (before.kind === "unseen") return before.why ?? "it was not looked at before the turn.";
  if (state.kind === "unseen") return state.why ?? "it cannot be looked at.";
  if (before.kind === "git") {
    return git ? compareGit({ ...former, before, root: git.root, look: git }) : "its repository is gone.";
  }
  return compareFormerFiles(seen, former);
}

/** Compares a folder that was outside git. A repository made during the turn is compared with the files before. */
async function compareFormerFiles({ git, root, stamps }: RootLook, former: Former): Promise<GitComparison | string> {
  const { notes, since, until } = former;
  const [earlier, later] = [former.stamps, git ? await former.walk() : stamps];
  if (!earlier || !later) return "this server does not have the list of its files before the turn.";
  if (typeof later === "string") return `${later}.`;
  const compared = await compareFiles({ root: root.path, until }, { earlier, later }, notes);
  if (typeof compared === "string") return `${compared}.`;
  const head = git?.status.head;
  const isMade = git !== undefined && head !== undefined;
  const commits = isMade ? await commitsBetween(git.root, { before: undefined, after: head, since }, notes) : [];
  return { ...compared, commits, gitFiles: [] };
}

/** A worktree that was made during the turn begins as the commit that it was made from. */
function madeBefore({ root, state }: RootLook): FolderState | undefined {
  if ("closed" in root || root.madeFrom === undefined) return undefined;
  return { ...state, kind: "git", head: root.madeFrom, files: {} };
}
