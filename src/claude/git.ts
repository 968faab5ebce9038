import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { WorkTree } from "../engine/ports.ts";

const run = promisify(execFile);

const DIFF_MAX = 1024 * 1024;
const GIT_MS = 10_000;

/** A repository's own configuration can name commands that git runs: none of them is to. */
const QUIET = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "diff.external="];

/** How the folder stands against its last commit; undefined where there is no git or no repository. */
export async function workTreeOf(cwd: string): Promise<WorkTree | undefined> {
  const git = async (...args: string[]) => {
    const environment = { ...process.env, GIT_OPTIONAL_LOCKS: "0", GIT_TERMINAL_PROMPT: "0" };
    const options = { cwd, env: environment, maxBuffer: DIFF_MAX, timeout: GIT_MS };
    return (await run("git", [...QUIET, ...args], options)).stdout;
  };
  const commit = await git("rev-parse", "--verify", "HEAD").catch(() => undefined);
  if (commit === undefined) return undefined;
  const diff = git("diff", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD").catch(
    () => "(too large to be told)",
  );
  const untracked = git("ls-files", "-z", "--others", "--exclude-standard").catch(() => "");
  const names = (await untracked).split("\0").filter((name) => name !== "");
  return { commit: commit.trim(), diff: await diff, untracked: names };
}
