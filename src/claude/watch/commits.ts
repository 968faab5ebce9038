import type { Commit } from "../../domain/receipt.ts";
import { parseCommits } from "./git-output.ts";
import { runGit, type GitRoot } from "./git-root.ts";
import type { Notes } from "./notes.ts";

/** Lists the commits that a moved head tells of. */

/** Maximum number of commits listed, and of characters in a subject. */
const [MAX_COMMITS, MAX_SUBJECT] = [100, 200];
/** Seconds by which the clock of a commit may be behind, because commits have whole seconds. */
const TOLERANCE_S = 2;

interface Heads {
  readonly before: string | undefined;
  readonly after: string;
  /** Time of the first look, ms; `undefined` if another server looked. */
  readonly since: number | undefined;
}

/**
 * Returns the commits below the new head and not below the old one, newest first. Leaves out commits older than the first look:
 * another branch or a pull brought them.
 */
export async function commitsBetween(root: GitRoot, { after, before, since }: Heads, notes: Notes): Promise<Commit[]> {
  const range = before === undefined ? [after] : [after, `^${before}`];
  const list = ["rev-list", `--max-count=${String(MAX_COMMITS + 1)}`, "--encoding=UTF-8", "--format=%ct%x00%s%x00"];
  const [isAbove, output] = await Promise.all([
    before === undefined || isAncestor(root, before, after),
    runGit(root, ...list, ...range, "--"),
  ]);
  if (!isAbove) {
    notes.explain(
      `${root.path}: HEAD moved to a commit that does not contain the former one (amend, rebase, reset or another branch).`,
    );
  }
  const found = parseCommits(output);
  const made = since === undefined ? found : found.filter(({ at }) => at >= since / 1_000 - TOLERANCE_S);
  const older = found.length - made.length;
  if (older > 0) {
    const many = found.length > MAX_COMMITS ? "Many" : String(older);
    notes.explain(
      `${root.path}: ${many} of the commits that came with the new HEAD are older than the turn, and not listed.`,
    );
  }
  if (since === undefined && !isAbove) {
    notes.explain(`${root.path}: the commits may include older ones of another branch.`);
  }
  if (made.length > MAX_COMMITS) {
    notes.explain(`${root.path}: only the newest ${String(MAX_COMMITS)} commits are listed.`);
  }
  return made.slice(0, MAX_COMMITS).map(({ hash, subject }) => ({ hash, subject: subject.slice(0, MAX_SUBJECT) }));
}

async function isAncestor(root: GitRoot, before: string, after: string): Promise<boolean> {
  return runGit(root, "merge-base", "--is-ancestor", before, after).then(
    () => true,
    () => false,
  );
}
