import { devNull } from "node:os";
import { asVariables, findGit, plainEnvironment, SETTINGS, type GitContext, type Setting } from "./read-only-git.ts";
import { run } from "./run.ts";

/**
 * Runs git on a repository that this server has made, under no settings but those of that repository. The work tree may be a
 * hostile repository's: nothing there names a program to run, and no file is converted or written through a symbolic link.
 */

export interface OwnRepository extends Pick<GitContext, "environment" | "wrapper"> {
  readonly gitDir: string;
  readonly workTree: string;
}

/** Runs one command; rejects as `ReadOnlyGit` does. `input` is the whole stdin. */
export type OwnGit = (args: readonly string[], input?: string | Buffer) => Promise<Buffer>;

/** Time limit of a command, ms. Packs and checkouts of large repositories take minutes. */
const LIMIT_MS = 15 * 60_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** Refuses names that a file system folds to `.git`; keeps large files out of memory. */
const STRICT: readonly Setting[] = [
  ["core.protectHFS", "true"],
  ["core.protectNTFS", "true"],
  ["core.bigFileThreshold", "16m"],
  ["gc.auto", "0"],
];

/** Author of commits that only carry files. */
const AUTHOR = { NAME: "claude-agents-mcp", EMAIL: "none", DATE: "1700000000 +0000" };

/** Resolves to `undefined` if there is no git on the `PATH` of the environment. */
export async function ownGit({ environment, gitDir, workTree, wrapper }: OwnRepository): Promise<OwnGit | undefined> {
  const program = await findGit({ cwd: workTree, environment, wrapper, allowed: [] });
  if (program === undefined) return undefined;
  const authors = ["AUTHOR", "COMMITTER"].flatMap((who) =>
    Object.entries(AUTHOR).map(([name, value]) => [`GIT_${who}_${name}`, value] as const),
  );
  const env = {
    ...plainEnvironment(environment),
    ...asVariables([...SETTINGS, ...STRICT]),
    ...Object.fromEntries(authors),
    GIT_CONFIG_GLOBAL: devNull,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_DIR: gitDir,
    GIT_WORK_TREE: workTree,
    GIT_LITERAL_PATHSPECS: "1",
    GIT_NO_REPLACE_OBJECTS: "1",
  };
  return async (args, input = "") =>
    run([...wrapper, program, "--no-pager", ...args], {
      cwd: workTree,
      env,
      limitMs: LIMIT_MS,
      input,
      mostBytes: MAX_OUTPUT_BYTES,
    });
}
