import type { WorkTree } from "../engine/ports.ts";
import { readOnlyGit, type GitPlace } from "../security/git/read-only-git.ts";

/** How the folder, and nothing outside it, stands against the last commit; undefined where there is no git or no repository. */
export async function workTreeOf(place: GitPlace): Promise<WorkTree | undefined> {
  const git = await readOnlyGit(place);
  if (typeof git === "string") return { refused: `${git} What is in it is not shown.` };
  const commit = await git?.("rev-parse", "--verify", "HEAD").catch(() => undefined);
  if (!git || !commit) return undefined;
  const how = ["--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--relative"];
  const [diff, untracked] = await Promise.all([
    git("diff", ...how, "HEAD", "--", ".").catch((error: unknown) => `(not shown: ${String(error)})`),
    git("ls-files", "-z", "--others", "--exclude-standard").catch(() => ""),
  ]);
  const names = untracked
    .toString()
    .split("\0")
    .filter((name) => name !== "");
  return { commit: commit.toString().trim(), diff: diff.toString(), untracked: names };
}
