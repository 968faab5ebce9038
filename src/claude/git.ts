import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { WorkTree } from "../engine/ports.ts";
import { through } from "./supervise/wrapper.ts";

const run = promisify(execFile);

const DIFF_MAX = 1024 * 1024;
const GIT_MS = 10_000;

/** A repository's own configuration can name commands that git runs: none of them is to. */
const QUIET = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "diff.external="];

/**
 * How the folder, and nothing outside it, stands against the last commit; undefined where there is no git or no repository.
 * `environment` and `wrapper` are those of a Claude Code: what a repository might get to run sees no secret of the server.
 */
export async function workTreeOf(
  cwd: string,
  environment: Record<string, string>,
  wrapper: readonly string[],
): Promise<WorkTree | undefined> {
  const env = { ...environment, GIT_OPTIONAL_LOCKS: "0", GIT_TERMINAL_PROMPT: "0" };
  const options = { cwd, env, maxBuffer: DIFF_MAX, timeout: GIT_MS };
  const plain = async (...args: string[]) =>
    (await run(...through(wrapper, "git", [...QUIET, ...args]), options)).stdout;
  const commit = await plain("rev-parse", "--verify", "HEAD").catch(() => undefined);
  if (commit === undefined) return undefined;
  const filters = withoutFilters(await plain("config", "--name-only", "--get-regexp", "^filter\\.").catch(() => ""));
  const git = async (...args: string[]) => plain(...filters, ...args);
  const how = ["--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--relative"];
  const diff = git("diff", ...how, "HEAD", "--", ".").catch(() => "(too large to be told)");
  const untracked = git("ls-files", "-z", "--others", "--exclude-standard").catch(() => "");
  const names = (await untracked).split("\0").filter((name) => name !== "");
  return { commit: commit.trim(), diff: await diff, untracked: names };
}

/** Drivers that clean files before they are compared are commands as well. */
function withoutFilters(names: string): string[] {
  const drivers = names.split("\n").flatMap((name) => /^filter\.(.+)\.\w+$/.exec(name)?.[1] ?? []);
  return [...new Set(drivers)].flatMap((driver) =>
    ["clean=", "smudge=", "process=", "required=false"].flatMap((off) => ["-c", `filter.${driver}.${off}`]),
  );
}
