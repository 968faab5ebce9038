import { join } from "node:path";
import type { FolderState } from "../../domain/receipt.ts";
import { submoduleFault } from "../../security/git/repository.ts";
import { PLAIN_DIFF } from "../../security/git/read-only-git.ts";
import { GitError } from "../../security/git/run.ts";
import { stampPaths } from "./disk.ts";
import { readGitFiles } from "./git-files.ts";
import { prefixOf, runGit, type GitRoot } from "./git-root.ts";
import { findDoubted, TOLERANCE_MS, type Reading } from "./index-doubts.ts";
import { readClaims, type IndexClaims } from "./index-flags.ts";
import { parseStatus, type DirtyPath, type GitStatus } from "./git-output.ts";
import type { Notes } from "./notes.ts";
import { submoduleStamp } from "./stamp.ts";
import { isGarbled } from "./walk-tree.ts";

/** Reads the state of a folder in a work tree. Only changes below the folder count; head and branch are the repository's. */

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

/** `since`: time of the look to compare with, ms. */
export type Looking = Reading & {
  readonly since?: number | undefined;
  readonly known?: Readonly<Record<string, string>> | undefined;
};

export interface GitLook {
  readonly state: FolderState;
  readonly status: GitStatus;
}

/** Rejects with a `GitError` or a `LateError`. */
export async function lookAtGit(root: GitRoot, looking: Looking): Promise<GitLook> {
  const { notes, since } = looking;
  const [found, own, claims] = await Promise.all([
    readStatus(root),
    readGitFiles(root.repository, looking.until),
    readClaims(root.repository, since === undefined ? undefined : since - TOLERANCE_MS),
  ]);
  const status = { ...found, dirty: await withClaimed(root, { dirty: found.dirty, claims, looking }) };
  if (claims === undefined) notes.miss(`${root.path}: files that git's index marks as unchanged may have changed.`);
  missNames(
    root,
    status.dirty.map(({ path }) => path),
    notes,
  );
  const about = {
    path: root.path,
    ...(status.head !== undefined && { head: status.head }),
    ...(status.branch !== undefined && { branch: status.branch }),
    gitFiles: { ...own.files, ...(claims && claims.leftOut !== "" && { [LEFT_OUT]: claims.leftOut }) },
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

/** Notes names that lead to no file, because they were not UTF-8. */
export function missNames({ path }: Pick<GitRoot, "path">, names: readonly string[], notes: Notes): void {
  if (names.some(isGarbled)) notes.miss(`${path}: files whose names are not UTF-8 are not compared.`);
}

/** Name among git's own files of the list of files that a sparse checkout leaves out. */
export const LEFT_OUT = "index (sparse checkout)";

interface Claimed {
  readonly dirty: readonly DirtyPath[];
  readonly claims: IndexClaims | undefined;
  readonly looking: Looking;
}

/** Adds files that git does not look at, or wrongly takes as unchanged, to those that it found. */
async function withClaimed(root: GitRoot, { claims, dirty, looking }: Claimed): Promise<readonly DirtyPath[]> {
  if (!claims) return dirty;
  const [prefix, known] = [prefixOf(root), new Set(dirty.map(({ path }) => path))];
  const below = (path: string) => (path.startsWith(prefix) ? [path.slice(prefix.length)] : []);
  const marked = claims.marked.flatMap(below).filter((path) => !known.has(path));
  const written = [...claims.written].flatMap(([path, id]) => below(path).map((name) => [name, id] as const));
  const clean = new Map(written.filter(([path]) => !known.has(path)));
  const doubted = clean.size === 0 ? clean : await findDoubted(root, clean, looking);
  const about = { isTracked: true, isStaged: false };
  return [
    ...dirty,
    ...marked.map((path) => ({ path, ...about, isMarked: true })),
    ...[...doubted].map(([path, claimedId]) => ({ path, ...about, claimedId })),
  ];
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
  const flags = ["--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "-U0"];
  const patch = await runGit(root, "diff", ...PLAIN_DIFF, ...flags, "--", ...indexed.keys());
  for (const section of patch.split(/^(?=diff --git )/m)) {
    const [, name = ""] = /^\+\+\+ b\/(.*?)\t?$/m.exec(section) ?? [];
    const [, commit] = /^\+Subproject commit ([0-9a-f]+)/m.exec(section) ?? [];
    if (commit !== undefined && found.has(name)) found.set(name, commit);
  }
  return found;
}
