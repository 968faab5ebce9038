import { join, relative } from "node:path";
import { lstat, otherwise, readdir } from "../../security/files/limited.ts";
import { readSmall } from "../../security/files/plain-file.ts";
import type { Repository } from "../../security/git/repository.ts";
import { stampPaths } from "./disk.ts";
import type { Notes } from "./notes.ts";
import { ABSENT, parseStamp } from "./stamp.ts";

/** Reads git's own files: configuration, hooks, and the linked worktrees of a repository. */

/** Maximum number of hooks and of files in `info`, and of linked worktrees. */
const [MAX_ENTRIES, MAX_WORKTREES] = [200, 64];

/** Returns digests of files that change what git does, by path in the git folder. Leaves out samples, which git never runs. */
export async function readGitFiles(
  { commonDir, gitDir }: Repository,
  until: number,
): Promise<{ files: Record<string, string>; isWhole: boolean }> {
  const names = ["config", "config.worktree"];
  if (gitDir !== commonDir) names.push(relative(commonDir, join(gitDir, "config.worktree")));
  for (const folder of ["hooks", "info"]) {
    const found = await lstat(join(commonDir, folder)).catch(otherwise(undefined));
    // A link counts as itself, because its target may lie anywhere.
    if (found?.isDirectory() !== true) names.push(folder);
    else names.push(...(await readdir(join(commonDir, folder))).map(({ name }) => `${folder}/${name}`));
  }
  const kept = names.filter((name) => !name.endsWith(".sample"));
  const stamps = await stampPaths({ root: commonDir, until }, kept.slice(0, MAX_ENTRIES), {});
  const files: Record<string, string> = {};
  for (const [name, stamp] of stamps) {
    const { content, kind, stat } = parseStamp(stamp);
    if (stamp !== ABSENT && kind !== "d") files[name] = `${kind}.${content === "" ? stat : content}`;
  }
  return { files, isWhole: kept.length <= MAX_ENTRIES };
}

/** Worktree linked to a repository. */
export interface LinkedWorktree {
  readonly path: string;
  /** Commit that the worktree was made from; `undefined` if git has not noted it. */
  readonly from: string | undefined;
}

const MAX_BYTES = 1_048_576;

/** Returns worktrees in the order of their names, as git's files tell: the caller checks the folders. Never rejects. */
export async function linkedWorktrees(commonDir: string): Promise<LinkedWorktree[]> {
  const folder = join(commonDir, "worktrees");
  const entries = await readdir(folder).catch(() => []);
  const found: LinkedWorktree[] = [];
  for (const entry of entries.slice(0, MAX_WORKTREES)) {
    if (!entry.isDirectory()) continue;
    const own = join(folder, entry.name);
    const dotGit = await readSmall(join(own, "gitdir"), MAX_BYTES).catch(() => "");
    const log = await readSmall(join(own, "logs", "HEAD"), MAX_BYTES).catch(() => "");
    const [, from] = /^[0-9a-f]+ ([0-9a-f]{40,64}) /.exec(log) ?? [];
    if (/[\\/]\.git\s*$/.test(dotGit)) found.push({ path: dotGit.trim().slice(0, -"/.git".length), from });
  }
  return found;
}

/** Names of files that decide which files git ignores. */
const IGNORE_RULES = new Set([".gitignore", "config", "config.worktree", "info/exclude"]);

/** Notes the consequences if rules of ignored files are among `changed`. `isAdded`: true if new files were found. */
export function noteIgnoreRules(
  { notes, root }: { readonly notes: Notes; readonly root: { readonly path: string } },
  changed: readonly string[],
  isAdded: boolean,
): void {
  if (!changed.some((name) => IGNORE_RULES.has(name))) return;
  // Most changes of the configuration have nothing to do with it.
  if (changed.includes(".gitignore") || changed.includes("info/exclude"))
    notes.miss(`${root.path}: what git ignores has changed, so new files can be out of sight.`);
  if (isAdded) notes.explain("Rules of ignored files changed: files listed as added may have been there before.");
}
