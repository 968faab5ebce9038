import { relative, sep } from "node:path";
import { openRepository, type GitContext, type OpenedRepository } from "../../security/git/read-only-git.ts";
import { GitError } from "../../security/git/run.ts";
import { parseObjects } from "./git-output.ts";

/** Opens a folder in a work tree, and runs git there. */

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
 * Settings for each command: an index or a configuration must not claim that a file has not changed, is not there, or is left
 * out of the work tree although it is there. A large file counts as binary, so that its lines are not read.
 */
const SETTINGS = [
  "core.bigFileThreshold=4m",
  "core.untrackedCache=false",
  "core.ignoreStat=false",
  "core.checkStat=default",
  "core.trustCtime=true",
  "core.sparseCheckout=true",
  "sparse.expectFilesOutsideOfPatterns=false",
  // Names that differ by case only are two files here.
  ...(process.platform === "linux" ? ["core.ignoreCase=false"] : []),
];

/** Words before each command. A replaced object would show another commit. */
const COMMON = ["--no-replace-objects", "--literal-pathspecs", ...SETTINGS.flatMap((setting) => ["-c", setting])];

export async function runGit({ git }: Pick<GitRoot, "git">, ...args: string[]): Promise<string> {
  return (await git(...COMMON, ...args)).toString();
}

/** Path of the folder in its work tree, with `/` at the end. */
export function prefixOf({ path, repository }: GitRoot): string {
  const below = relative(repository.top, path).split(sep).join("/");
  return below === "" ? "" : `${below}/`;
}

/** Returns contents by id, without those for which there was no room. */
export async function readBlobs(root: GitRoot, ids: readonly string[]): Promise<Map<string, Buffer>> {
  if (ids.length === 0) return new Map();
  return parseObjects(await root.readObjects(ids).catch(beginningOf));
}

/** Returns what git wrote before it wrote too much. */
function beginningOf(error: unknown): Buffer {
  if (error instanceof GitError && error.beginning !== undefined) return error.beginning;
  throw error;
}
