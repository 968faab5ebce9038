import { mkdir, readdir, realpath, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { dirname, join } from "node:path";
import { invalidArgument } from "../domain/error.ts";
import { exists } from "../security/files/limited.ts";
import { ownGit, type OwnGit, type OwnRepository } from "../security/git/own-repository.ts";
import { openRepository, type GitContext } from "../security/git/read-only-git.ts";
import { GitError } from "../security/git/run.ts";
import type { Work } from "./manifest.ts";
import { createBeside, listOf, namesIn, PLAIN_URL, REFS, shown } from "./work-repository.ts";

/**
 * Unpacks the repository of a session: into a new folder, made beside its place and renamed, or into a clone that has the commit
 * and no changes. Moves no branch of a clone, and runs nothing that the file or the clone names.
 */

interface Unpacking {
  readonly sessionId: string;
  readonly work: Work;
  /** File of the bundle. */
  readonly bundle: string;
  /** Folder for a repository of this server. */
  readonly scratch: string;
  readonly environment: GitContext["environment"];
}

/** Folder prepared for the work; no file at its place has changed yet. */
export interface PreparedWork {
  /** Writes the files. Returns a sentence on the result. */
  finish(): Promise<string>;
  /** Removes what was prepared. */
  drop(): Promise<void>;
}

/** `folder` is absolute. Throws INVALID_ARGUMENT for a folder that cannot take the work. */
export async function prepareWork(folder: string, unpacking: Unpacking): Promise<PreparedWork> {
  try {
    return (await isFree(folder)) ? await prepareFolder(folder, unpacking) : await prepareClone(folder, unpacking);
  } catch (error) {
    throw error instanceof GitError ? invalidArgument("file", `git cannot unpack its files: ${error.message}.`) : error;
  }
}

/** True for a missing or empty folder. */
async function isFree(folder: string): Promise<boolean> {
  const found = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw invalidArgument("--cwd", `${folder} cannot be used: ${error.message}. Name a new folder.`);
  });
  return found.length === 0;
}

async function prepareFolder(folder: string, unpacking: Unpacking): Promise<PreparedWork> {
  const { work } = unpacking;
  await mkdir(dirname(folder), { recursive: true });
  const draft = join(await realpath(dirname(folder)), `.${randomUUID()}.unpacking`);
  let made = draft;
  const drop = async () => rm(made, { recursive: true, force: true });
  try {
    await mkdir(draft);
    const gitDir = join(draft, ".git");
    const git = await requireGit({ ...unpacking, wrapper: [], gitDir, workTree: draft });
    await git(["init", "-q", "--template=", `--object-format=${work.format}`]);
    // Absent if git has found it to be the usual one.
    await git(["config", "--unset", "core.worktree"]).catch(() => undefined);
    if (work.shallow.length > 0) await writeFile(join(gitDir, "shallow"), `${work.shallow.join("\n")}\n`);
    await takeObjects(git, unpacking);
    const branch = await checkedBranch(git, work.branch);
    if (branch !== undefined) await git(["symbolic-ref", "HEAD", `refs/heads/${branch}`]);
    if (work.commit !== undefined) {
      await git(["update-ref", ...(branch === undefined ? ["--no-deref"] : []), "HEAD", work.commit]);
      await git(["read-tree", "--reset", "-u", "HEAD"]);
    }
    const files = await findFiles(git, { objects: join(gitDir, "objects"), top: draft }, unpacking);
    await writeFiles(git, files, unpacking);
    await setOrigin(git, work.origin);
    const at = work.commit === undefined ? "" : `, at commit ${work.commit.slice(0, 12)}`;
    const finish = async () => {
      // Windows does not rename over an empty folder.
      await rmdir(folder).catch(() => undefined);
      await rename(draft, folder);
      made = folder;
      return `The files are in the new repository ${folder}${branch === undefined ? "" : `, on branch ${branch}`}${at}.`;
    };
    return { drop, finish };
  } catch (error) {
    await drop();
    throw error;
  }
}

async function requireGit(repository: OwnRepository): Promise<OwnGit> {
  const git = await ownGit(repository);
  if (git) return git;
  throw invalidArgument("file", "it holds a repository, and there is no git on the PATH. Install git.");
}

async function prepareClone(folder: string, unpacking: Unpacking): Promise<PreparedWork> {
  const { environment, sessionId, work } = unpacking;
  const refused = (why: string) => invalidArgument("--cwd", `${folder} ${why}, or name a new folder.`);
  const cwd = await realpath(folder);
  const opened = await openRepository({ cwd, environment, wrapper: [], allowed: [] });
  if (typeof opened === "string") throw refused(`cannot be used. ${opened} Mend it`);
  if (opened?.repository.top !== cwd) throw refused("has files and is not the top of a repository. Empty it");
  const { git: run, hasFilters, repository } = opened;
  const git: OwnGit = async (args) => run(...args);
  const { commit } = work;
  const has = async (...args: string[]) => (await git(args).catch(() => Buffer.from(""))).toString().trim();
  if (commit === undefined || (await has("cat-file", "-t", commit)) !== "commit")
    throw refused(`has files, and not the commit ${commit ?? ""} of the session. Fetch it`);
  if ((await git(["status", "--porcelain", "--ignore-submodules=dirty"])).length > 0)
    throw refused("has changes that are not committed. Commit them");
  const head = await has("rev-parse", "--verify", "--quiet", "HEAD");
  if (head !== commit && hasFilters) throw refused(`is not at commit ${commit}. Check it out`);
  const drop = async () => dropRefs(git, work);
  try {
    await takeObjects(git, unpacking);
    const files = await findFiles(git, { objects: join(repository.commonDir, "objects"), top: cwd }, unpacking);
    for (const name of files.added)
      if (await exists(join(cwd, shown(name)))) throw refused(`has a file ${shown(name)}, which git ignores. Move it`);
    const finish = async () => {
      const branch =
        head === commit ? undefined : await switchTo(git, has, { commit, head, sessionId, wanted: work.branch });
      await writeFiles(git, files, unpacking);
      return `The files are in the clone ${folder}${branch === undefined ? "" : `, on branch ${branch}`}.`;
    };
    return { drop, finish };
  } catch (error) {
    await drop();
    throw error;
  }
}

interface Switch {
  readonly commit: string;
  readonly head: string;
  readonly sessionId: string;
  readonly wanted: string | undefined;
}

/** Switches a clean clone to a branch at the commit: the session's if that is free or there already, otherwise a new one. */
async function switchTo(
  git: OwnGit,
  has: (...args: string[]) => Promise<string>,
  { commit, head, sessionId, wanted }: Switch,
): Promise<string> {
  const usual = await checkedBranch(git, wanted);
  const at = usual === undefined ? "" : await has("rev-parse", "--verify", "--quiet", `refs/heads/${usual}`);
  const branch = usual !== undefined && (at === "" || at === commit) ? usual : `session-${sessionId.slice(0, 8)}`;
  await git(["read-tree", "-m", "-u", head, commit]);
  if (branch !== usual || at === "")
    await git(["update-ref", `refs/heads/${branch}`, commit, "0".repeat(commit.length)]);
  await git(["symbolic-ref", "HEAD", `refs/heads/${branch}`]);
  return branch;
}

/** Reads the bundle, and keeps its commits by refs until `dropRefs`. */
async function takeObjects(git: OwnGit, { bundle, work }: Unpacking): Promise<void> {
  const refs = (await git(["bundle", "unbundle", bundle])).toString().split("\n");
  for (const ref of refsOf(work)) {
    const id = refs.find((line) => line.endsWith(` ${ref}`))?.split(" ", 1)[0];
    if (id === undefined || (ref === REFS.commit && id !== work.commit))
      throw invalidArgument("file", `its bundle lacks ${ref}. Pack the session again.`);
    await checkSize(git, id, await sizeOf(bundle));
    await git(["update-ref", ref, id]);
  }
}

/** Bounds of the files of a commit: in all, and as a multiple of the bundle, as of the parts of a packed session. */
const [FREE_BYTES, MAX_RATIO] = [4 * 1024 ** 3, 200];

/** Throws INVALID_ARGUMENT for files that are small only in a bundle, which holds equal files and folders once. */
async function checkSize(git: OwnGit, commit: string, packed: number): Promise<void> {
  const files = namesIn(await git(["ls-tree", "-r", "-l", "-z", "--full-tree", commit]));
  const bytes = files.reduce((sum, line) => sum + Number(/^\d+ blob \w+ +(\d+)\t/.exec(line)?.[1] ?? 0), 0);
  if (bytes > Math.max(FREE_BYTES, packed * MAX_RATIO))
    throw invalidArgument(
      "file",
      `its files would be too large: ${String(Math.round(bytes / 1024 ** 3))} GiB. Nothing was unpacked.`,
    );
}

const sizeOf = async (file: string) => (await stat(file)).size;

function refsOf({ commit, hasIndex }: Work): string[] {
  return [REFS.files, ...(hasIndex ? [REFS.index] : []), ...(commit === undefined ? [] : [REFS.commit])];
}

async function dropRefs(git: OwnGit, work: Work): Promise<void> {
  for (const ref of refsOf(work)) await git(["update-ref", "-d", ref]);
}

/** Returns the branch if git accepts its name. */
async function checkedBranch(git: OwnGit, branch: string | undefined): Promise<string | undefined> {
  if (branch === undefined) return undefined;
  return git(["check-ref-format", `refs/heads/${branch}`]).then(
    () => branch,
    () => undefined,
  );
}

async function setOrigin(git: OwnGit, origin: string | undefined): Promise<void> {
  if (origin === undefined || !PLAIN_URL.test(origin)) return;
  await git(["config", "remote.origin.url", origin]);
  await git(["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
}

interface ChangedFiles {
  /** Repository that writes files byte by byte. */
  readonly raw: OwnGit;
  /** Commit, or tree, that the files are compared with, and commit of the files. */
  readonly base: string;
  readonly files: string;
  readonly removed: readonly string[];
  readonly added: readonly string[];
  /** New and changed files, `added` included. */
  readonly written: readonly string[];
}

const GITLINK = "160000";

/** Compares the files of the session with its commit. Leaves submodules alone. */
async function findFiles(
  git: OwnGit,
  place: { readonly objects: string; readonly top: string },
  { environment, scratch, work }: Unpacking,
): Promise<ChangedFiles> {
  const gitDir = join(scratch, "files");
  const raw = await requireGit({ environment, wrapper: [], gitDir, workTree: place.top });
  await createBeside(raw, { gitDir, objects: place.objects, format: work.format });
  const files = (await git(["rev-parse", REFS.files])).toString().trim();
  const base = work.commit ?? (await raw(["hash-object", "-t", "tree", "-w", "--stdin"])).toString().trim();
  const parts = namesIn(await raw(["diff-tree", "-r", "-z", "--raw", "--no-renames", base, files]));
  const changes = parts.flatMap((part, at) => {
    const [, before, after, status] = /^:(\d+) (\d+) \w+ \w+ (\w)$/.exec(part) ?? [];
    return status === undefined ? [] : [{ before, after, status, name: parts[at + 1] ?? "" }];
  });
  const written = changes.filter(({ after, status }) => status !== "D" && after !== GITLINK);
  return {
    raw,
    base,
    files,
    removed: changes.filter(({ before, status }) => status === "D" && before !== GITLINK).map(({ name }) => name),
    added: written.filter(({ status }) => status === "A").map(({ name }) => name),
    written: written.map(({ name }) => name),
  };
}

/** Writes the files over the commit, then the index. git itself refuses to go through symbolic links. */
async function writeFiles(
  git: OwnGit,
  { base, files, raw, removed, written }: ChangedFiles,
  { work }: Unpacking,
): Promise<void> {
  await raw(["read-tree", base]);
  if (removed.length > 0)
    await raw(["rm", "-q", "-f", "--pathspec-from-file=-", "--pathspec-file-nul"], listOf(removed));
  await raw(["read-tree", files]);
  await raw(["checkout-index", "-q", "-f", "-z", "--stdin"], listOf(written));
  const index = work.hasIndex ? REFS.index : work.commit;
  await git(["read-tree", ...(index === undefined ? ["--empty"] : [index])]);
  // Ends with 1 if files differ from the index, as they may.
  await git(["update-index", "-q", "--refresh"]).catch(() => undefined);
  await dropRefs(git, work);
}
