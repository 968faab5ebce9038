import { join } from "node:path";
import type { FolderState } from "../../domain/receipt.ts";
import { readSmall } from "../../security/files/plain-file.ts";
import { isInside } from "../../security/paths.ts";
import { lookAtGit, missNames, type GitLook } from "./git-look.ts";
import type { GitRoot } from "./git-root.ts";
import type { Notes } from "./notes.ts";
import type { ClosedRoot, Root, Roots } from "./roots.ts";
import { SKIPPED, walkFiles } from "./walk.ts";
import type { Stamps } from "./walks.ts";
import { within } from "./within.ts";

/** Looks at one folder of a session. */

export interface Looking {
  /** Time of the look to compare with, ms. */
  readonly since?: number | undefined;
  readonly until: number;
  readonly known?: Readonly<Record<string, string>> | undefined;
  readonly onRead: (path: string, bytes: Buffer) => void;
  readonly notes: Notes;
  /** True if the stamps are for a later comparison, for which small files outside git are read. */
  readonly isFirst: boolean;
  readonly walkProgram: string | undefined;
}

/** State of a folder, and the details that a comparison needs. */
export interface RootLook {
  readonly root: ClosedRoot | Root;
  readonly state: FolderState;
  readonly git?: (GitLook & { readonly root: GitRoot }) | undefined;
  /** Stamps of a folder outside git. */
  readonly stamps?: Stamps | undefined;
}

/** Never rejects, and gives up at `until`. */
export async function lookAtRoot(root: ClosedRoot | Root, roots: Roots, looking: Looking): Promise<RootLook> {
  const late = { root, state: { path: root.path, kind: "unseen", why: "it has not answered in time." } } as const;
  return within(lookInside(root, roots, looking), looking.until - performance.now(), late);
}

async function lookInside(root: ClosedRoot | Root, roots: Roots, looking: Looking): Promise<RootLook> {
  const unseen = (why: string): RootLook => ({ root, state: { path: root.path, kind: "unseen", why } });
  if ("closed" in root) return unseen(root.closed);
  const { git, path } = root;
  try {
    if (git) {
      const look = await lookAtGit(git, looking);
      await describeGit(git, look, roots, looking.notes);
      return { root, state: look.state, git: { ...look, root: git } };
    }
    const stamps = await walkRoot(root, roots, looking);
    if (typeof stamps === "string") return unseen(`${stamps}.`);
    missNames(root, [...stamps.keys()], looking.notes);
    describeFiles(root, looking.notes);
    return { root, state: { path, kind: "files" }, stamps };
  } catch (error) {
    return unseen(`${error instanceof Error ? error.message : String(error)}.`);
  }
}

/** Lists the files of a folder as outside git, without those of other folders of the session. Never rejects. */
export async function walkRoot(
  { path }: ClosedRoot | Root,
  roots: Roots,
  { isFirst, until, walkProgram }: Pick<Looking, "isFirst" | "until" | "walkProgram">,
): Promise<Stamps | string> {
  const without = roots.all.map((each) => each.path).filter((each) => each !== path && isInside(each, path));
  return walkFiles({ root: path, without, reads: isFirst, until, program: walkProgram });
}

const MAX_BYTES = 1_048_576;

/** Says what git does not show of a work tree. */
async function describeGit(git: GitRoot, { status }: GitLook, roots: Roots, notes: Notes): Promise<void> {
  const { path, repository } = git;
  if (path !== repository.top) {
    notes.explain(`${path} is part of a larger repository: files elsewhere in that repository are not compared.`);
  }
  const known = new Set(roots.all.map((each) => each.path));
  for (const nested of status.nested.filter((each) => !known.has(join(path, each)))) {
    notes.miss(`${nested} is a repository of its own, which is not looked at.`);
  }
  if (!git.hasFilters) return;
  const files = [join(repository.top, ".gitattributes"), join(repository.commonDir, "info", "attributes")];
  const texts = await Promise.all(files.map(async (file) => readSmall(file, MAX_BYTES).catch(() => "")));
  if (!texts.some((text) => /\bfilter=/.test(text))) return;
  notes.explain(
    `${path} has files with filters of git (such as LFS), which are switched off: these files can look changed.`,
  );
}

function describeFiles({ path, why }: Root, notes: Notes): void {
  if (why !== undefined) notes.explain(`${path}: ${why} So its files are compared as outside git.`);
  const limits = "large files by size and times only, without lines and tests of changed files";
  notes.explain(`${path} is compared without git: ${limits}.`);
  // A sentence of its own, because a receipt cuts long ones.
  notes.explain(`Outside git, these are not entered: ${SKIPPED.join(", ")}.`);
}
