import type { Commit, FolderState } from "../../domain/receipt.ts";
import { basename } from "node:path";
import { PLAIN_DIFF } from "../../security/git/read-only-git.ts";
import { GitError } from "../../security/git/run.ts";
import { changeByBytes, textOf, type FoundChange } from "./change.ts";
import { commitsBetween } from "./commits.ts";
import type { CopySet } from "./copies.ts";
import { blobId, stampPaths } from "./disk.ts";
import { LEFT_OUT, missNames, type GitLook } from "./git-look.ts";
import { noteIgnoreRules } from "./git-files.ts";
import { readBlobs, runGit, type GitRoot } from "./git-root.ts";
import { doubtedChanges } from "./index-doubts.ts";
import { parseRaw, type DirtyPath, type RawChange } from "./git-output.ts";
import type { Notes } from "./notes.ts";
import { ABSENT, isDoubtful, isSame, submoduleStamp } from "./stamp.ts";
import type { Stamps } from "./walks.ts";
import { isTestFile, testLanguageOf } from "./test-languages.ts";

/**
 * Compares a folder in a work tree with its former state: paths that were dirty then by their stamps on disk, all others by
 * git, with the former commit.
 */

interface Compared {
  readonly root: GitRoot;
  readonly before: FolderState;
  readonly look: GitLook;
  /** Bytes of files read by the look, by path. */
  readonly fresh: Map<string, Buffer>;
  readonly copies: CopySet | undefined;
  /** Time of the former look, ms. */
  readonly since: number | undefined;
  readonly until: number;
  readonly notes: Notes;
}

export interface GitComparison {
  readonly changes: FoundChange[];
  readonly commits: Commit[];
  readonly gitFiles: string[];
  /** True if the files could not be compared. */
  readonly isPartial?: boolean;
  /** Stamps of a folder outside git. */
  readonly stamps?: Stamps | undefined;
}

/** Rejects with a `GitError` or a `LateError`. */
export async function compareGit(compared: Compared): Promise<GitComparison> {
  const [heads, dirty, clean] = await Promise.all([
    compareHeads(compared),
    compareDirty(compared),
    compareClean(compared),
  ]);
  const changes = [...dirty, ...clean];
  const names = [...changes.map(({ path }) => basename(path)), ...heads.gitFiles];
  noteIgnoreRules(
    compared,
    names,
    clean.some(({ change }) => change === "added"),
  );
  return { ...heads, changes };
}

/** Compares heads and git's own files only, for a work tree with too many dirty files. */
export async function compareHeads({ before, look, notes, root, since }: Compared): Promise<GitComparison> {
  const after = look.status.head;
  const isMoved = before.head !== after && after !== undefined;
  const commits = isMoved ? await commitsBetween(root, { before: before.head, after, since }, notes) : [];
  const gitFiles = changedGitFiles(before, look.state);
  if (gitFiles.includes(LEFT_OUT)) {
    notes.miss(`${root.path}: files that came into or left the sparse checkout are not compared.`);
  }
  return { changes: [], commits, gitFiles };
}

function changedGitFiles({ gitFiles: earlier = {} }: FolderState, { gitFiles: later = {} }: FolderState): string[] {
  const names = new Set([...Object.keys(earlier), ...Object.keys(later)]);
  return [...names].filter((name) => earlier[name] !== later[name]).toSorted();
}

/** Compares paths that were dirty before. */
async function compareDirty(compared: Compared): Promise<FoundChange[]> {
  const { before, copies, fresh, look, notes, root, until } = compared;
  const earlier = before.files ?? {};
  missNames(root, Object.keys(earlier), notes);
  const later = { ...look.state.files };
  const clean = Object.keys(earlier).filter((path) => !(path in later));
  const submodules = clean.filter((path) => earlier[path]?.startsWith("s.") === true);
  for (const path of submodules) later[path] = await committedSubmodule(root, path);
  const rest = clean.filter((path) => !submodules.includes(path));
  const onRead = (path: string, bytes: Buffer) => void fresh.set(path, bytes);
  for (const [path, stamp] of await stampPaths({ root: root.path, until }, rest, { known: earlier, onRead })) {
    later[path] = stamp;
  }
  const changes: FoundChange[] = [];
  let unknown = 0;
  for (const [path, stamp] of Object.entries(earlier)) {
    const now = later[path] ?? ABSENT;
    if (isSame(stamp, now)) continue;
    if (isDoubtful(stamp, now)) notes.explain(`${path} is too large to be read: only its size and times are compared.`);
    const [hadFile, hasFile] = [stamp !== ABSENT, now !== ABSENT];
    const old = hadFile ? await copies?.read(path) : undefined;
    if (hadFile && old === undefined && /^[fe]/.test(stamp)) unknown += 1;
    changes.push(changeByBytes(path, { hadFile, hasFile, before: old, after: fresh.get(path) }));
  }
  if (unknown > 0) {
    notes.explain(`Lines and tests of ${String(unknown)} files that were dirty before the turn are not known.`);
  }
  return changes;
}

/** Returns the stamp of a submodule at the commit that `HEAD` names. */
async function committedSubmodule(root: GitRoot, path: string): Promise<string> {
  const commit = await runGit(root, "rev-parse", "--verify", `HEAD:./${path}`).catch(() => "");
  return commit === "" ? ABSENT : submoduleStamp(commit.trim());
}

const DIFF = [
  "diff",
  ...PLAIN_DIFF,
  "--find-renames",
  "-l1000",
  "-O/dev/null",
  "--raw",
  "--numstat",
  "-z",
  "--no-abbrev",
];

/** Maximum number of test files whose texts are read. */
const MAX_TEXTS = 200;

/** Maximum characters of paths on a command line. Above, git looks at the whole folder. */
const MAX_COMMAND = 24_000;

/** Compares paths that were clean or absent before. */
async function compareClean(compared: Compared): Promise<FoundChange[]> {
  const { before, fresh, look } = compared;
  const earlier = before.files ?? {};
  const all = look.status.dirty.filter(({ path }) => !(path in earlier));
  for (const { path } of all.filter(({ isMarked }) => isMarked)) {
    compared.notes.miss(`${path} was marked in git's index during the turn, so that git does not look at the file.`);
  }
  const doubted = all.filter(({ claimedId }) => claimedId !== undefined);
  const dirty = all.filter(({ claimedId, isMarked }) => isMarked !== true && claimedId === undefined);
  const found = await rawChanges(compared, dirty);
  const raw = found.filter(({ path }) => !doubted.some((each) => each.path === path));
  const untracked = dirty.filter(({ isTracked }) => !isTracked).map(({ path }) => path);
  const onDisk = await keptDeleted(raw, untracked, compared);
  const gone = raw.filter(({ path, status }) => status === "D" && !onDisk.has(path));
  const renamed = findRenames(gone, untracked, fresh);
  const isRenamed = new Set(renamed.values());
  const ofGit = raw.filter(({ path, status }) => !onDisk.has(path) && !(status === "D" && isRenamed.has(path)));
  const changes = await withTexts(ofGit, compared);
  changes.push(...(await doubtedChanges(doubted, found, compared)));
  for (const [path, isChanged] of onDisk) if (isChanged) changes.push({ path, change: "changed" });
  for (const path of untracked.filter((each) => !onDisk.has(each))) {
    const added = changeByBytes(path, { hadFile: false, hasFile: true, after: fresh.get(path) });
    const from = renamed.get(path);
    if (from === undefined) changes.push(added);
    else changes.push({ ...added, from, change: "renamed", lines: [0, 0], before: added.after });
  }
  return changes;
}

/**
 * Lists the differences of paths that were clean before. Compares the work tree with the index if the index is as the former
 * commit, because git takes seconds to compare a few paths of a large commit with the work tree.
 */
async function rawChanges(compared: Compared, dirty: readonly DirtyPath[]): Promise<RawChange[]> {
  const { before, look, notes, root } = compared;
  const isMoved = before.head !== look.status.head;
  const tracked = dirty.filter(({ isTracked }) => isTracked);
  if (tracked.length === 0 && !isMoved) return [];
  const isIndexed = !isMoved && !tracked.some(({ isStaged }) => isStaged);
  const names = tracked.map(({ path }) => path);
  const paths = isIndexed && names.join().length <= MAX_COMMAND ? ["--", ...names] : ["--"];
  const base = before.head ?? (await runGit(root, "hash-object", "-t", "tree", "--stdin")).trim();
  const raw = await runGit(root, ...DIFF, ...(isIndexed ? [] : [base]), ...paths).then(
    parseRaw,
    async (error: unknown) => {
      if (!(error instanceof GitError) || error.beginning !== undefined) throw error;
      notes.explain(
        `${root.path}: lines of tracked files are not known, because git cannot read all: ${error.message}.`,
      );
      return changesByStatus(compared, tracked, isMoved ? [base, look.status.head ?? base] : []);
    },
  );
  const { files: earlier = {} } = before;
  const isHidden = new Set(
    dirty
      .filter(({ path, submodule }) => submodule !== undefined && look.state.files?.[path] === undefined)
      .map(({ path }) => path),
  );
  return raw.flatMap((each) => withoutEarlier(each, earlier)).filter(({ path }) => !isHidden.has(path));
}

/** Lists differences without the contents of the work tree, where git fails at a pipe or at a file that it may not read. */
async function changesByStatus(
  { look, root }: Compared,
  tracked: readonly DirtyPath[],
  heads: readonly string[],
): Promise<RawChange[]> {
  const flags = ["-r", "-z", "--raw", "--no-abbrev", "--relative", "--no-renames"];
  const committed = heads.length === 0 ? [] : parseRaw(await runGit(root, "diff-tree", ...flags, ...heads));
  const found = new Map(committed.map((each) => [each.path, each]));
  for (const { isAdded, path } of tracked) {
    const known = found.get(path) ?? { path, from: undefined, oldMode: "", newMode: "", oldId: "", lines: undefined };
    const isGone = look.state.files?.[path] === ABSENT;
    found.set(path, { ...known, status: isGone ? "D" : isAdded === true ? "A" : "M" });
  }
  return [...found.values()];
}

/** Leaves out paths that are compared by their stamps. A rename from or to such a path is a deletion or an addition. */
function withoutEarlier(change: RawChange, earlier: Readonly<Record<string, string>>): RawChange[] {
  const { from, path } = change;
  if (from === undefined) return path in earlier ? [] : [change];
  const [hadFrom, hadPath] = [from in earlier, path in earlier];
  if (hadFrom && hadPath) return [];
  if (hadPath) return [{ ...change, path: from, from: undefined, status: "D", lines: undefined }];
  return [hadFrom ? { ...change, from: undefined, status: "A", lines: undefined } : change];
}

/** Finds files that the index has no more, but the disk has. Returns the paths, with true if the content is another. */
async function keptDeleted(
  raw: readonly RawChange[],
  untracked: readonly string[],
  { fresh, root, until }: Compared,
): Promise<Map<string, boolean>> {
  const deleted = raw.filter(({ oldMode, status }) => status === "D" && oldMode !== "160000");
  const unread = deleted.map(({ path }) => path).filter((path) => !untracked.includes(path));
  const onRead = (path: string, bytes: Buffer) => void fresh.set(path, bytes);
  const stamps = await stampPaths({ root: root.path, until }, unread, { onRead });
  const kept = new Map<string, boolean>();
  for (const { oldId, path } of deleted) {
    const bytes = fresh.get(path);
    const isThere = (stamps.get(path) ?? "f") !== ABSENT && !(stamps.get(path) ?? "f").startsWith("d");
    if (isThere) kept.set(path, bytes === undefined || blobId(bytes, oldId) !== oldId);
  }
  return kept;
}

/** Recognizes files that were moved without git, by equal content. Returns old paths by new ones. */
function findRenames(
  gone: readonly RawChange[],
  untracked: readonly string[],
  fresh: ReadonlyMap<string, Buffer>,
): Map<string, string> {
  const [first] = gone;
  const renamed = new Map<string, string>();
  if (!first) return renamed;
  const byId = new Map(gone.map(({ oldId, path }) => [oldId, path]));
  for (const path of untracked) {
    const bytes = fresh.get(path);
    const id = bytes === undefined || bytes.length === 0 ? undefined : blobId(bytes, first.oldId);
    const from = id === undefined ? undefined : byId.get(id);
    if (id === undefined || from === undefined) continue;
    renamed.set(path, from);
    byId.delete(id);
  }
  return renamed;
}

const CHANGES: Readonly<Record<string, FoundChange["change"]>> = { A: "added", D: "deleted", R: "renamed", C: "added" };

/** Turns git's list into changes, with the texts of test files: old ones from git, new ones from the disk. */
async function withTexts(raw: readonly RawChange[], { fresh, notes, root, until }: Compared): Promise<FoundChange[]> {
  const isTest = (path: string | undefined) => path !== undefined && testLanguageOf(path) !== undefined;
  const tests = raw.filter(
    ({ from, path, status }) => (isTest(path) || isTest(from)) && (status !== "D" || !isTestFile(path)),
  );
  const former = tests.filter(({ status }) => status !== "A").slice(0, MAX_TEXTS);
  const ids = former.map(({ oldId }) => oldId).filter((id) => id !== "");
  const objects = await readBlobs(root, ids);
  const toRead = tests.filter(({ path, status }) => status !== "D" && !fresh.has(path)).map(({ path }) => path);
  const onRead = (path: string, bytes: Buffer) => void fresh.set(path, bytes);
  await stampPaths({ root: root.path, until }, toRead.slice(0, MAX_TEXTS), { onRead });
  const unknown = tests.filter(
    ({ oldId, path, status }) => (status !== "A" && !objects.has(oldId)) || (status !== "D" && !fresh.has(path)),
  );
  if (unknown.length > 0) {
    notes.explain(
      `${root.path}: tests in ${String(unknown.length)} changed files are not known, because of their size or number.`,
    );
  }
  const isKnown = new Set(tests.map(({ path }) => path));
  return raw.map(({ from, lines, oldId, path, status }) => {
    const change = CHANGES[status] ?? "changed";
    const about = { path, change, lines, ...(change === "renamed" && { from }) };
    if (!isKnown.has(path)) return about;
    return { ...about, before: textOf(objects.get(oldId)), after: textOf(fresh.get(path)) };
  });
}
