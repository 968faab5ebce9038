import { join, relative, sep } from "node:path";
import type { FolderState } from "../../domain/receipt.ts";
import { openRepository, type GitContext, type OpenedRepository } from "../../security/git/read-only-git.ts";
import { submoduleFault } from "../../security/git/repository.ts";
import { GitError } from "../../security/git/run.ts";
import { stampPaths } from "./disk.ts";
import { readGitFiles } from "./git-files.ts";
import { markedPaths } from "./index-flags.ts";
import { parseStatus, type DirtyPath, type GitStatus } from "./git-output.ts";
import type { Notes } from "./notes.ts";
import { submoduleStamp } from "./stamp.ts";

/** Reads the state of a folder in a work tree. Only changes below the folder count; head and branch are the repository's. */

/** Folder in a work tree. */
export interface GitRoot extends OpenedRepository {
  /** Real path of the folder. */
  readonly path: string;
  readonly allowed: GitContext["allowed"];
}

/** Resolves as `openRepository` does. */
export async function openGitRoot(place: GitContext, limitMs: number): Promise<GitRoot | string | undefined> {
  const opened = await openRepository(place, limitMs);
  return typeof opened === "object" ? { ...opened, path: place.cwd, allowed: place.allowed } : opened;
}

/**
 * Words before each command. A replaced object would show another commit, and an index can claim that a file has not changed.
 * A large file counts as binary, so that its lines are not read.
 */
const COMMON = [
  "--no-replace-objects",
  "--literal-pathspecs",
  ...["bigFileThreshold=4m", "untrackedCache=false", "ignoreStat=false", "checkStat=default"].flatMap((setting) => [
    "-c",
    `core.${setting}`,
  ]),
];

export async function runGit({ git }: Pick<GitRoot, "git">, ...args: string[]): Promise<string> {
  return (await git(...COMMON, ...args)).toString();
}

const STATUS = [
  "status",
  "--porcelain=v2",
  "-z",
  "--branch",
  "--no-ahead-behind",
  "--no-renames",
  "--untracked-files=all",
  // Looks at the commit of a submodule only, because anything else would need a git inside.
  "--ignore-submodules=dirty",
  "--",
  ".",
];

/** Bounds of a stored state: number of paths, and bytes of the paths and stamps as JSON. */
const [MAX_PATHS, MAX_BYTES] = [1_000, 65_536];

export interface GitLook {
  readonly state: FolderState;
  readonly status: GitStatus;
}

interface Looking {
  /** Time on `performance.now()` at which to give up. */
  readonly until: number;
  readonly known?: Readonly<Record<string, string>> | undefined;
  readonly onRead?: (path: string, bytes: Buffer) => void;
  readonly notes: Notes;
}

/** Rejects with a `GitError` or a `LateError`. */
export async function lookAtGit(root: GitRoot, looking: Looking): Promise<GitLook> {
  const [found, own, marked] = await Promise.all([
    readStatus(root),
    readGitFiles(root.repository, looking.until),
    markedPaths(root.repository),
  ]);
  const status = { ...found, dirty: withMarked(root, found.dirty, marked) };
  if (marked === undefined)
    looking.notes.miss(`${root.path}: files that git's index marks as unchanged may have changed.`);
  const about = {
    path: root.path,
    ...(status.head !== undefined && { head: status.head }),
    ...(status.branch !== undefined && { branch: status.branch }),
    gitFiles: own.files,
  };
  if (!own.isWhole) looking.notes.miss(`${root.path}: the hooks are too many to compare all.`);
  const unseen = (why: string): GitLook => ({ state: { ...about, kind: "unseen", why }, status });
  if (status.isCut || status.dirty.length > MAX_PATHS) {
    return unseen(
      `more than ${String(MAX_PATHS)} files are changed or untracked. Commit them, or let git ignore them.`,
    );
  }
  const files = await stampDirty(root, status, looking);
  if (Buffer.byteLength(JSON.stringify(files)) > MAX_BYTES) {
    return unseen(`the list of changed and untracked files is longer than ${String(MAX_BYTES)} bytes.`);
  }
  return { state: { ...about, kind: "git", files }, status };
}

/** Adds files that git does not look at to those that it found. */
function withMarked(root: GitRoot, dirty: readonly DirtyPath[], marked: readonly string[] = []): readonly DirtyPath[] {
  if (marked.length === 0) return dirty;
  const [prefix, known] = [prefixOf(root), new Set(dirty.map(({ path }) => path))];
  const paths = marked.flatMap((path) => (path.startsWith(prefix) ? [path.slice(prefix.length)] : []));
  const added = paths.filter((path) => !known.has(path));
  return [...dirty, ...added.map((path) => ({ path, isTracked: true, isStaged: false, isMarked: true }))];
}

/** Path of the folder in its work tree, with `/` at the end. */
function prefixOf({ path, repository }: GitRoot): string {
  const below = relative(repository.top, path).split(sep).join("/");
  return below === "" ? "" : `${below}/`;
}

async function readStatus(root: GitRoot): Promise<GitStatus & { isCut: boolean }> {
  const prefix = prefixOf(root);
  try {
    return { ...parseStatus(await runGit(root, ...STATUS), prefix), isCut: false };
  } catch (error) {
    if (!(error instanceof GitError) || error.beginning === undefined) throw error;
    return { ...parseStatus(error.beginning.toString(), prefix), isCut: true };
  }
}

async function stampDirty(root: GitRoot, { dirty }: GitStatus, looking: Looking): Promise<Record<string, string>> {
  const submodules = dirty.filter(({ submodule }) => submodule !== undefined);
  const plain = dirty.filter(({ submodule }) => submodule === undefined).map(({ path }) => path);
  const stamps = await stampPaths({ root: root.path, until: looking.until }, plain, looking);
  const checked = new Map<string, string>();
  for (const { path, submodule = "" } of submodules) {
    const fault = await submoduleFault(join(root.path, path), root.allowed);
    if (fault === undefined) checked.set(path, submodule);
    else looking.notes.miss(`The submodule ${path} is not looked at: ${fault}`);
  }
  for (const [path, commit] of await checkedOut(root, checked)) stamps.set(path, submoduleStamp(commit));
  return Object.fromEntries([...stamps].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns the commits that submodules have checked out. `indexed`: their commits in the index, by path. */
async function checkedOut(root: GitRoot, indexed: ReadonlyMap<string, string>): Promise<Map<string, string>> {
  const found = new Map(indexed);
  if (found.size === 0) return found;
  const flags = ["--no-color", "--no-ext-diff", "--no-renames", "--ignore-submodules=dirty", "--submodule=short"];
  const names = ["--relative", "--src-prefix=a/", "--dst-prefix=b/", "-U0"];
  const patch = await runGit(root, "diff", ...flags, ...names, "--", ...indexed.keys());
  for (const section of patch.split(/^(?=diff --git )/m)) {
    const [, name = ""] = /^\+\+\+ b\/(.*?)\t?$/m.exec(section) ?? [];
    const [, commit] = /^\+Subproject commit ([0-9a-f]+)/m.exec(section) ?? [];
    if (commit !== undefined && found.has(name)) found.set(name, commit);
  }
  return found;
}
