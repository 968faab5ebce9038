import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { lstat, otherwise, readdir, realpath } from "../files/limited.ts";
import { readSmall } from "../files/plain-file.ts";
import { isInside } from "../paths.ts";

/**
 * Checks that a git repository keeps to the folder it was found for. Files inside a repository name the place of its objects
 * (`.git` as a file, `commondir`, `objects/info/alternates`, symbolic links): their author could make git show the commits of
 * any repository on the machine.
 */

/** Maximum size of a file with settings or paths. */
const MAX_BYTES = 1_048_576;

/** Folders reported by git. All absolute. */
export interface Repository {
  readonly gitDir: string;
  readonly commonDir: string;
  /** Root of the work tree. */
  readonly top: string;
}

/**
 * Returns the reason, as a sentence, why git must not read the repository for `folder`; `undefined` if git may. Each entry of
 * `allowed` is a set of folders: all data must lie within one folder of each set.
 */
export async function repositoryFault(
  folder: string,
  { commonDir, gitDir, top }: Repository,
  allowed: readonly (readonly string[])[],
): Promise<string | undefined> {
  try {
    const [cwd, git, common] = [await realpath(folder), await realpath(gitDir), await realpath(commonDir)];
    const dotGit = await nearestDotGit(cwd);
    if (dotGit === undefined) return "The folder is laid out as a bare repository, which is not read.";
    if (dirname(dotGit) !== (await realpath(top))) return "The repository has its work tree elsewhere.";
    const root = await findDataRoot(dotGit, git, cwd);
    if (root === undefined) return `Its .git leads to ${git}, which does not belong to this folder.`;
    const isAllowed = await createPathTest([cwd, root], allowed);
    return (await dataFault([git, common], isAllowed)) ?? (await objectsFault(join(common, "objects"), isAllowed));
  } catch (error) {
    return uncheckableText(error);
  }
}

/**
 * Returns the reason, as a sentence, why git must not read the commit of the submodule in `folder`; `undefined` if git may, or
 * if `folder` has no `.git`. Skips the objects of the submodule, because a diff shows only the commit.
 */
export async function submoduleFault(
  folder: string,
  allowed: readonly (readonly string[])[],
): Promise<string | undefined> {
  try {
    const dotGit = join(folder, ".git");
    const found = await lstat(dotGit).catch(otherwise(undefined));
    if (found === undefined) return undefined;
    const cwd = await realpath(folder);
    const git = await realpath(found.isFile() ? resolve(folder, gitDirIn(await readSmall(dotGit, MAX_BYTES))) : dotGit);
    const root = await findDataRoot(join(cwd, ".git"), git, cwd);
    if (root === undefined) return `The .git of its submodule ${folder} leads to ${git}, which does not belong to it.`;
    const target = await readSmall(join(git, "commondir"), MAX_BYTES).catch(missingIsEmpty);
    const common = await realpath(resolve(git, target.trim()));
    return await dataFault([git, common], await createPathTest([cwd, root], allowed));
  } catch (error) {
    return uncheckableText(error);
  }
}

const uncheckableText = (error: unknown) =>
  `The repository cannot be checked: ${error instanceof Error ? error.message : String(error)}.`;

type PathTest = (path: string) => boolean;

/** Returns a test for paths: within one of `folders`, and within one folder of each set in `allowed`. */
async function createPathTest(folders: readonly string[], allowed: readonly (readonly string[])[]): Promise<PathTest> {
  const sets = await Promise.all(
    allowed
      .filter((each) => each.length > 0)
      .map(async (each) => Promise.all(each.map(async (one) => realpath(one).catch(() => one)))),
  );
  return (path) => [folders, ...sets].every((each) => each.some((one) => isInside(path, one)));
}

async function dataFault(folders: readonly string[], isAllowed: PathTest): Promise<string | undefined> {
  const outside = folders.find((path) => !isAllowed(path));
  if (outside !== undefined) return `Its data lies in ${outside}, outside the folder.`;
  for (const each of folders) {
    const link = await findLink(each);
    if (link !== undefined) return link;
  }
  return undefined;
}

/** Returns the `.git` in `folder` or in its nearest parent, as git searches. */
export async function nearestDotGit(folder: string): Promise<string | undefined> {
  const path = join(folder, ".git");
  if (await lstat(path).catch(otherwise(undefined))) return path;
  return dirname(folder) === folder ? undefined : nearestDotGit(dirname(folder));
}

/** Returns the root of the work tree around `folder`; for a linked work tree, also the root of the main one. Never rejects. */
export async function findWorkTrees(folder: string): Promise<string[]> {
  const dotGit = await nearestDotGit(folder);
  if (dotGit === undefined) return [];
  const top = dirname(dotGit);
  try {
    const gitDir = await realpath(resolve(top, gitDirIn(await readSmall(dotGit, MAX_BYTES))));
    const root = await findDataRoot(dotGit, gitDir, folder);
    return root === undefined || basename(root) !== ".git" ? [top] : [top, dirname(root)];
  } catch {
    // `.git` is a folder, not a file, as in most repositories.
    return [top];
  }
}

/** Returns the folder named by a `.git` file. Throws if there is none. */
function gitDirIn(text: string): string {
  const [, target] = /^gitdir: (.+)$/m.exec(text) ?? [];
  if (target === undefined) throw new Error("its .git names no folder");
  return target;
}

/**
 * Returns the folder in which the repository may keep its data. A `.git` leading elsewhere counts only if its target points
 * back.
 */
async function findDataRoot(dotGit: string, gitDir: string, cwd: string): Promise<string | undefined> {
  if (gitDir === dotGit || isInside(gitDir, cwd)) return gitDir;
  const found = await lstat(dotGit);
  if (!found.isFile()) return undefined;
  // Linked work tree: `<main>/.git/worktrees/<name>/gitdir` names `dotGit`.
  const back = await readSmall(join(gitDir, "gitdir"), MAX_BYTES).catch(() => undefined);
  if (back !== undefined && basename(dirname(gitDir)) === "worktrees") {
    const isOurs = (await realpath(resolve(gitDir, back.trim())).catch(() => "")) === (await realpath(dotGit));
    return isOurs ? dirname(dirname(gitDir)) : undefined;
  }
  // Submodule: `<outer>/.git/modules/<name>/config` names the folder of `dotGit` as its work tree.
  const config = await readSmall(join(gitDir, "config"), MAX_BYTES).catch(() => "");
  const tree = /^\s*worktree\s*=\s*(\S.*?)\s*$/m.exec(config)?.[1];
  const isOurs = tree !== undefined && (await realpath(resolve(gitDir, tree)).catch(() => "")) === dirname(dotGit);
  return isOurs ? gitDir : undefined;
}

/** Entries of a git folder that git reads, or follows to other files. */
const READ_BY_GIT = [
  "HEAD",
  "commondir",
  "config",
  "config.worktree",
  "index",
  "info",
  "objects",
  "packed-refs",
  "refs",
  "shallow",
];

async function findLink(folder: string): Promise<string | undefined> {
  const below = await readdir(join(folder, "info")).catch(otherwise([]));
  for (const name of [...READ_BY_GIT, ...below.map((each) => join("info", each.name))]) {
    const found = await lstat(join(folder, name)).catch(otherwise(undefined));
    if (found?.isSymbolicLink()) return `${join(folder, name)} is a symbolic link.`;
  }
  return undefined;
}

/** Maximum number of loose objects to look through. git packs from 6,700 on. */
const MAX_ENTRIES = 200_000;
/** Maximum depth of alternates, as in git. */
const MAX_ALTERNATES = 5;

async function objectsFault(objects: string, isAllowed: PathTest, depth = 0): Promise<string | undefined> {
  const found = await lstat(objects).catch(() => undefined);
  if (!found?.isDirectory()) return `Its objects in ${objects} cannot be read.`;
  let left = MAX_ENTRIES;
  for (const entry of await readdir(objects)) {
    if (entry.isSymbolicLink()) return `${join(objects, entry.name)} is a symbolic link.`;
    if (!entry.isDirectory()) continue;
    const entries = await readdir(join(objects, entry.name));
    left -= entries.length;
    const link = entries.find((each) => each.isSymbolicLink());
    if (link) return `${join(objects, entry.name, link.name)} is a symbolic link.`;
  }
  if (left < 0) return `Its objects in ${objects} are too many to check: run git gc.`;
  return alternatesFault(objects, isAllowed, depth);
}

async function alternatesFault(objects: string, isAllowed: PathTest, depth: number): Promise<string | undefined> {
  const text = await readSmall(join(objects, "info", "alternates"), MAX_BYTES).catch(missingIsEmpty);
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const place = isAbsolute(line) ? line : resolve(objects, line);
    const real = await realpath(place).catch(() => undefined);
    // git unquotes a quoted line, and would then read another path than the checked one.
    if (line.startsWith('"') || real === undefined || !isAllowed(real)) {
      return `It borrows objects from ${place}, outside the folder.`;
    }
    const fault =
      depth < MAX_ALTERNATES ? await objectsFault(real, isAllowed, depth + 1) : "It borrows objects in too many steps.";
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function missingIsEmpty(error: unknown): string {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
  throw error;
}
