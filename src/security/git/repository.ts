import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { lstat, otherwise, readdir, realpath } from "../files/limited.ts";
import { readSmall } from "../files/plain-file.ts";
import { isInside } from "../paths.ts";

/**
 * Whether a git repository keeps to the folder that it was found for. Files inside a repository say where its objects are
 * (`.git` as a file, `commondir`, `objects/info/alternates`, symbolic links): their author could make git show the
 * commits of any repository on the machine.
 */

/** Of a file with settings or paths. */
const MAX_BYTES = 1_048_576;

/** What git itself says it found for a folder. All absolute. */
export interface Repository {
  readonly gitDir: string;
  readonly commonDir: string;
  /** The root of the work tree. */
  readonly top: string;
}

/** Why nothing of the repository may be read for this folder, as a sentence; undefined where it may. */
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
    const root = await rootOf(dotGit, git, cwd);
    if (root === undefined) return `Its .git leads to ${git}, which does not belong to this folder.`;
    const sets = await Promise.all(
      allowed
        .filter((folders) => folders.length > 0)
        .map(async (folders) => Promise.all(folders.map(async (each) => realpath(each).catch(() => each)))),
    );
    const isFine = (path: string) =>
      [cwd, root].some((each) => isInside(path, each)) &&
      sets.every((folders) => folders.some((each) => isInside(path, each)));
    const outside = [git, common].find((path) => !isFine(path));
    if (outside !== undefined) return `Its data lies in ${outside}, outside the folder.`;
    return (await linkIn(git)) ?? (await linkIn(common)) ?? (await objectsFault(join(common, "objects"), isFine));
  } catch (error) {
    return `The repository cannot be checked: ${error instanceof Error ? error.message : String(error)}.`;
  }
}

/** The `.git` that git finds first on its way up. */
async function nearestDotGit(folder: string): Promise<string | undefined> {
  const path = join(folder, ".git");
  if (await lstat(path).catch(otherwise(undefined))) return path;
  return dirname(folder) === folder ? undefined : nearestDotGit(dirname(folder));
}

/** The work tree that the folder lies in, and the main one if that is linked to it. Never rejects. */
export async function workTreesOf(folder: string): Promise<string[]> {
  const dotGit = await nearestDotGit(folder);
  if (dotGit === undefined) return [];
  const top = dirname(dotGit);
  try {
    const [, way] = /^gitdir: (.+)$/m.exec(await readSmall(dotGit, MAX_BYTES)) ?? [];
    const gitDir = way === undefined ? undefined : await realpath(resolve(top, way));
    const root = gitDir === undefined ? undefined : await rootOf(dotGit, gitDir, folder);
    return root === undefined || basename(root) !== ".git" ? [top] : [top, dirname(root)];
  } catch {
    // A folder, as in most repositories.
    return [top];
  }
}

/** Where the repository may keep its data: a `.git` that leads elsewhere counts only if what it leads to points back. */
async function rootOf(dotGit: string, gitDir: string, cwd: string): Promise<string | undefined> {
  if (gitDir === dotGit || isInside(gitDir, cwd)) return gitDir;
  const found = await lstat(dotGit);
  if (!found.isFile()) return undefined;
  // A linked work tree: <main>/.git/worktrees/<name>/gitdir names this very file.
  const back = await readSmall(join(gitDir, "gitdir"), MAX_BYTES).catch(() => undefined);
  if (back !== undefined && basename(dirname(gitDir)) === "worktrees") {
    const isOurs = (await realpath(resolve(gitDir, back.trim())).catch(() => "")) === (await realpath(dotGit));
    return isOurs ? dirname(dirname(gitDir)) : undefined;
  }
  // A submodule: <outer>/.git/modules/<name>/config names this folder as its work tree.
  const config = await readSmall(join(gitDir, "config"), MAX_BYTES).catch(() => "");
  const tree = /^\s*worktree\s*=\s*(\S.*?)\s*$/m.exec(config)?.[1];
  const isOurs = tree !== undefined && (await realpath(resolve(gitDir, tree)).catch(() => "")) === dirname(dotGit);
  return isOurs ? gitDir : undefined;
}

/** Of these git reads, or goes through them to what it reads. */
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

async function linkIn(folder: string): Promise<string | undefined> {
  const below = await readdir(join(folder, "info")).catch(otherwise([]));
  for (const name of [...READ_BY_GIT, ...below.map((each) => join("info", each.name))]) {
    const found = await lstat(join(folder, name)).catch(otherwise(undefined));
    if (found?.isSymbolicLink()) return `${join(folder, name)} is a symbolic link.`;
  }
  return undefined;
}

/** A store with more loose objects is not looked through. git packs them from 6,700 on. */
const MAX_ENTRIES = 200_000;
/** As git has it. */
const MAX_ALTERNATES = 5;

async function objectsFault(
  objects: string,
  isFine: (path: string) => boolean,
  depth = 0,
): Promise<string | undefined> {
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
  return alternatesFault(objects, isFine, depth);
}

async function alternatesFault(
  objects: string,
  isFine: (path: string) => boolean,
  depth: number,
): Promise<string | undefined> {
  const text = await readSmall(join(objects, "info", "alternates"), MAX_BYTES).catch(missingIsEmpty);
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const place = isAbsolute(line) ? line : resolve(objects, line);
    const real = await realpath(place).catch(() => undefined);
    // git takes a quoted line apart: no path of ours is what it then reads.
    if (line.startsWith('"') || real === undefined || !isFine(real)) {
      return `It borrows objects from ${place}, outside the folder.`;
    }
    const fault =
      depth < MAX_ALTERNATES ? await objectsFault(real, isFine, depth + 1) : "It borrows objects in too many steps.";
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function missingIsEmpty(error: unknown): string {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
  throw error;
}
