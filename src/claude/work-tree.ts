import { join } from "node:path";
import type { WorkTree } from "../engine/ports.ts";
import { PLAIN_DIFF, readOnlyGit, type GitContext, type ReadOnlyGit } from "../security/git/read-only-git.ts";
import { submoduleFault } from "../security/git/repository.ts";
import { GitError, unreadableText } from "../security/git/run.ts";

/** Compares a folder, and nothing outside, with its last commit in git. */

/** Flags for an equal text of a shown diff. */
const TEXT = [
  "--src-prefix=a/",
  "--dst-prefix=b/",
  "--unified=3",
  "--inter-hunk-context=0",
  "--diff-algorithm=default",
  "--find-renames",
  "-l1000",
  "--abbrev=7",
  // Overrides a configured order file, which may be missing.
  "-O/dev/null",
];

/** Maximum size of the list of new files, bytes: hundreds of thousands are possible, and the diff needs room too. */
const UNTRACKED_BYTES = 8_192;

/** `undefined` if the folder is in no repository. */
export async function readWorkTree(place: GitContext): Promise<WorkTree | undefined> {
  const git = await readOnlyGit(place);
  if (git === undefined) return undefined;
  if (typeof git === "string") return refused(git);
  try {
    const commit = await readCommit(git);
    const base = commit ?? (await line(git, "hash-object", "-t", "tree", "--stdin"));
    const [diff, untracked] = await Promise.all([
      readBeginning(git("diff", ...PLAIN_DIFF, ...TEXT, base, "--", "."), "\n"),
      readBeginning(git("ls-files", "-z", "--others", "--exclude-standard"), "\0"),
    ]);
    const fault = await movedSubmoduleFault({ git, base, diff: diff.text }, place);
    if (fault !== undefined) return refused(fault);
    if (diff.text + untracked.text === "" && (await isIgnored(git))) return refused("git ignores this folder.");
    const names = firstNames(untracked.text.split("\0").filter((name) => name !== ""));
    const isCut = diff.isCut || untracked.isCut || names.isCut;
    return {
      ...(commit !== undefined && { commit }),
      diff: diff.text,
      untracked: names.names,
      ...(isCut && { truncated: true }),
    };
  } catch (error) {
    if (error instanceof GitError) return refused(unreadableText(error));
    throw error;
  }
}

const refused = (why: string): WorkTree => ({ refused: `${why} The changes are not shown.` });

async function line(git: ReadOnlyGit, ...args: string[]): Promise<string> {
  return (await git(...args)).toString().trim();
}

/** `undefined` for a branch without a commit. Rejects if `HEAD` names neither a commit nor a branch. */
async function readCommit(git: ReadOnlyGit): Promise<string | undefined> {
  const commit = await line(git, "rev-parse", "--verify", "HEAD").catch(() => undefined);
  if (commit !== undefined) return commit;
  const branch = await line(git, "symbolic-ref", "HEAD").catch(() => undefined);
  if (branch === undefined) throw new GitError("HEAD names no commit");
  return undefined;
}

async function isIgnored(git: ReadOnlyGit): Promise<boolean> {
  return git("check-ignore", "--quiet", ".").then(
    () => true,
    () => false,
  );
}

/** Returns git's output; if too long, up to the last complete part. */
async function readBeginning(answer: Promise<Buffer>, end: string): Promise<{ text: string; isCut: boolean }> {
  try {
    return { text: (await answer).toString(), isCut: false };
  } catch (error) {
    if (!(error instanceof GitError) || error.beginning === undefined) throw error;
    const text = error.beginning.toString();
    return { text: text.slice(0, text.lastIndexOf(end) + 1), isCut: true };
  }
}

function firstNames(all: readonly string[]): { names: string[]; isCut: boolean } {
  let left = UNTRACKED_BYTES;
  const over = all.findIndex((name) => (left -= Buffer.byteLength(name) + 3) < 0);
  return { names: all.slice(0, over < 0 ? all.length : over), isCut: over >= 0 };
}

interface Shown {
  readonly git: ReadOnlyGit;
  readonly base: string;
  readonly diff: string;
}

/** Returns the reason for hiding a submodule commit in the diff: the submodule's `.git` could name another repository here. */
async function movedSubmoduleFault({ base, diff, git }: Shown, place: GitContext): Promise<string | undefined> {
  if (!/^\+Subproject commit /m.test(diff)) return undefined;
  const raw = await git("diff", ...PLAIN_DIFF, "--no-renames", "--raw", "-z", base, "--", ".");
  const parts = raw.toString().split("\0");
  for (const [at, part] of parts.entries()) {
    if (!/^:\d+ 160000 /.test(part)) continue;
    const fault = await submoduleFault(join(place.cwd, parts[at + 1] ?? ""), place.allowed);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
