import { resolve } from "node:path";
import type { WatchedSession } from "../../engine/ports.ts";
import { realpath } from "../../security/files/limited.ts";
import type { GitContext } from "../../security/git/read-only-git.ts";
import { nearestDotGit } from "../../security/git/repository.ts";
import { isInside } from "../../security/paths.ts";
import { allowedPlaces, buildEnvironment, type ClaudeDependencies } from "../dependencies.ts";
import { checkFolder } from "../preflight/session-paths.ts";
import { findClosedPaths } from "../restrictions.ts";
import { linkedWorktrees } from "./git-files.ts";
import { openGitRoot, type GitRoot } from "./git-root.ts";
import type { Notes } from "./notes.ts";
import { within } from "./within.ts";

/** Finds the folders that a session's changes are looked for in. */

/** Folder of a session. `git` is absent outside a work tree, and if the repository must not be read, for the reason in `why`. */
export interface Root {
  readonly path: string;
  readonly git?: GitRoot | undefined;
  readonly why?: string | undefined;
  /** Commit that a linked worktree was made from. */
  readonly madeFrom?: string | undefined;
}

/** Folder that must not or cannot be looked at. */
export interface ClosedRoot {
  readonly path: string;
  readonly closed: string;
}

export interface Roots {
  /** Real path of the session's own folder, with which relative paths of the comparison begin. */
  readonly own: string;
  readonly all: readonly (ClosedRoot | Root)[];
}

interface Places {
  readonly folders: readonly string[];
  readonly context: Omit<GitContext, "cwd">;
  /** Returns the path of a folder that the session may use. Throws for any other. */
  readonly check: (folder: string) => Promise<string>;
}

/** Checks what a session may use, as `plan` does. Throws PERMISSION_DENIED if its environment is gone. */
async function watchedPlaces(session: WatchedSession, config: ClaudeDependencies): Promise<Places> {
  const { own, all } = allowedPlaces(config, session);
  const environment = buildEnvironment(config, session);
  const { cwd } = session.options;
  const closed = await findClosedPaths({ cwd }, environment, config);
  const { additionalDirectories: added = [] } = session.options;
  return {
    folders: [cwd, ...added.map((folder) => resolve(cwd, folder))],
    context: { environment, wrapper: own.spawnWrapper, allowed: all.map(({ allowDirs }) => allowDirs) },
    check: async (folder) => {
      let checked = folder;
      for (const { allowDirs } of all) checked = await checkFolder("cwd", checked, allowDirs, closed);
      return realpath(checked);
    },
  };
}

export interface RootLimits {
  /** Time limit of one git, ms. */
  readonly gitMs: number;
  /** Time limit for finding one folder, ms, so that a hanging folder leaves time for the others. */
  readonly openMs: number;
  readonly notes: Notes;
}

/** Maximum number of folders. */
const MAX_ROOTS = 12;

/** Never rejects. */
export async function findRoots(
  session: WatchedSession,
  config: ClaudeDependencies,
  limits: RootLimits,
): Promise<Roots> {
  const { cwd } = session.options;
  try {
    const places = await watchedPlaces(session, config);
    const found = await Promise.all(places.folders.map(async (folder) => openRoot(folder, places, limits)));
    const kept = withoutNested(found);
    const linked = await openLinked(kept, places, limits);
    const all = [...kept, ...linked];
    if (all.length > MAX_ROOTS) {
      limits.notes.miss(
        `Only ${String(MAX_ROOTS)} of ${String(all.length)} folders and worktrees of the session are compared.`,
      );
    }
    return { own: found[0]?.path ?? cwd, all: all.slice(0, MAX_ROOTS) };
  } catch (error) {
    return { own: cwd, all: [{ path: cwd, closed: textOf(error) }] };
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

type Opened = ClosedRoot | (Root & { readonly dotGit: string | undefined });

async function openRoot(folder: string, places: Places, { gitMs, openMs }: RootLimits): Promise<Opened> {
  return within(openFolder(folder, places, gitMs), openMs, { path: folder, closed: "it has not answered in time." });
}

async function openFolder(folder: string, { check, context }: Places, gitMs: number): Promise<Opened> {
  try {
    const path = await check(folder);
    const dotGit = await nearestDotGit(path);
    const git = dotGit === undefined ? undefined : await openGitRoot({ ...context, cwd: path }, gitMs);
    if (typeof git !== "object") return { path, dotGit, ...(git !== undefined && { why: git }) };
    // git shows nothing of an ignored folder, whose files thus belong to no repository.
    if (await isIgnored(git)) return { path, dotGit: undefined, why: "git ignores this folder." };
    return { path, dotGit, git };
  } catch (error) {
    return { path: folder, closed: textOf(error) };
  }
}

async function isIgnored(git: GitRoot): Promise<boolean> {
  if (git.path === git.repository.top) return false;
  // Calls `git` without `COMMON`, because this command refuses literal paths.
  return git.git("check-ignore", "--quiet", ".").then(
    () => true,
    () => false,
  );
}

/** Leaves out folders inside another of the list, unless of another repository. */
function withoutNested(roots: readonly Opened[]): Opened[] {
  return roots.filter((root, at) => {
    if ("closed" in root) return !roots.slice(0, at).some(({ path }) => path === root.path);
    return !roots.some((other, place) => {
      if (place === at || "closed" in other || other.dotGit !== root.dotGit || !isInside(root.path, other.path))
        return false;
      return root.path !== other.path || place < at;
    });
  });
}

/** Opens worktrees below the work trees of the session, as subagents have them. */
async function openLinked(roots: readonly Opened[], places: Places, limits: RootLimits): Promise<Root[]> {
  const known = new Set(roots.map(({ path }) => path));
  const found: { readonly folder: string; readonly from: string | undefined }[] = [];
  for (const root of roots) {
    if ("closed" in root || !root.git) continue;
    const { commonDir, top } = root.git.repository;
    for (const { from, path } of await linkedWorktrees(commonDir)) {
      const folder = await places.check(path).catch(() => undefined);
      if (folder === undefined || known.has(folder) || !isInside(folder, top)) continue;
      known.add(folder);
      found.push({ folder, from });
    }
  }
  const opened = await Promise.all(
    found.slice(0, MAX_ROOTS).map(async ({ folder, from }) => ({ from, root: await openRoot(folder, places, limits) })),
  );
  return opened.flatMap(({ from, root }) => {
    if (!("closed" in root) && root.git) return [{ path: root.path, git: root.git, madeFrom: from }];
    limits.notes.miss(
      `${root.path}: the worktree is not looked at: ${"closed" in root ? root.closed : (root.why ?? "git does not know it.")}`,
    );
    return [];
  });
}
