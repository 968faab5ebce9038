import { dirname, relative, sep } from "node:path";
import { realpath } from "../../security/files/limited.ts";
import { nearestDotGit } from "../../security/git/repository.ts";
import { isInside } from "../../security/paths.ts";
import { runGit, type GitRoot } from "./git-root.ts";
import type { Notes } from "./notes.ts";
import type { ClosedRoot, Root } from "./roots.ts";
import { SKIPPED } from "./walk.ts";

/** Maximum number of paths looked at, and given to one git. */
const [MAX_PATHS, MAX_AT_ONCE] = [1_000, 200];

/**
 * Returns those of `paths` that exist, but that no comparison of `roots` can see: ignored by git, in a `.git`, in another
 * repository inside, in a skipped folder, or behind a link to elsewhere.
 */
export async function findOutOfSight(
  paths: readonly string[],
  roots: readonly (ClosedRoot | Root)[],
  notes: Notes,
): Promise<string[]> {
  const found = new Set<string>();
  const asked = new Map<GitRoot, Map<string, string>>();
  if (paths.length > MAX_PATHS)
    notes.miss(`Only ${String(MAX_PATHS)} files of tools are looked for among ignored files.`);
  for (const path of paths.slice(0, MAX_PATHS)) {
    const real = await realpath(path).catch(() => undefined);
    if (real === undefined) continue;
    const git = await gitThatKnows(real, roots);
    if (git === "none") found.add(path);
    else if (git) asked.set(git, (asked.get(git) ?? new Map<string, string>()).set(real, path));
  }
  for (const [git, named] of asked) {
    for (const real of await ignoredBy(git, [...named.keys()], notes)) {
      const path = named.get(real);
      if (path !== undefined) found.add(path);
    }
  }
  return [...found];
}

/** Returns the work tree that would list the file; `none` for a file out of sight, `undefined` for a file in sight. */
async function gitThatKnows(
  real: string,
  roots: readonly (ClosedRoot | Root)[],
): Promise<GitRoot | "none" | undefined> {
  const around = roots.filter(({ path }) => isInside(real, path)).toSorted((a, b) => b.path.length - a.path.length);
  const [root] = around;
  if (!root || "closed" in root) return "none";
  const names = relative(root.path, real).split(sep);
  if (names.includes(".git")) return "none";
  if (!root.git) return names.some((name) => SKIPPED.includes(name)) ? "none" : undefined;
  return (await nearestDotGit(dirname(real))) === (await nearestDotGit(root.path)) ? root.git : "none";
}

async function ignoredBy(git: GitRoot, files: readonly string[], notes: Notes): Promise<string[]> {
  const ignored: string[] = [];
  for (let at = 0; at < files.length; at += MAX_AT_ONCE) {
    const names = files.slice(at, at + MAX_AT_ONCE).map((file) => relative(git.path, file).split(sep).join("/"));
    try {
      const listed = await runGit(git, "ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", ...names);
      ignored.push(...listed.split("\0").filter((name) => name !== ""));
    } catch {
      notes.miss(`${git.path}: git does not say which files of tools it ignores.`);
    }
  }
  const isIgnored = new Set(ignored);
  return files.filter((file) => isIgnored.has(relative(git.path, file).split(sep).join("/")));
}
