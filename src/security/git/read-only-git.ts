import { join, resolve, sep } from "node:path";
import { otherwise, realpath } from "../files/limited.ts";
import { isInside } from "../paths.ts";
import { isExecutable, programFolders } from "../find-program.ts";
import { nearestDotGit, repositoryFault, type Repository } from "./repository.ts";
import { GitError, unreadableText, run } from "./run.ts";

/**
 * Runs git for read-only actions in an untrusted repository: no file on disk can make git start a program, use a network or
 * read an object store outside the folder. Every read-only git command of this server goes through here.
 */

export interface GitContext {
  readonly cwd: string;
  /** Environment of a Claude Code, so that a program started by a repository sees no secret of the server. */
  readonly environment: Readonly<Record<string, string>>;
  /** Words before the command; `[]` means none. */
  readonly wrapper: readonly string[];
  /** Sets of folders. Anything read must lie in one folder of each set; an empty set allows any folder. */
  readonly allowed: readonly (readonly string[])[];
  /** Maximum size of the output of a command, bytes. Default: 1 MiB. */
  readonly mostBytes?: number;
}

/** Returns the stdout of one git command. Rejects with a `GitError` if git fails, takes too long or writes too much. */
export type ReadOnlyGit = (...args: string[]) => Promise<Buffer>;

/**
 * Flags of `git diff`, so that it starts no converter or diff program, and for an equal text under any configuration. A
 * submodule counts as its commit, because git would look for changes in a submodule with a separate git.
 */
export const PLAIN_DIFF: readonly string[] = [
  "--no-color",
  "--no-ext-diff",
  "--no-textconv",
  "--ignore-submodules=dirty",
  "--submodule=short",
  "--relative",
];

const LIMIT_MS = 10_000;

/** Repository that may be read. */
export interface OpenedRepository {
  readonly git: ReadOnlyGit;
  /** Returns the contents of objects by id, as `git cat-file --batch` writes them. */
  readonly readObjects: (ids: readonly string[]) => Promise<Buffer>;
  readonly repository: Repository;
  /** True if the configuration has filter drivers, which are switched off: files that they write can look changed. */
  readonly hasFilters: boolean;
}

/** Resolves as `openRepository` does, but to its `git` alone. */
export async function readOnlyGit(place: GitContext, limitMs = LIMIT_MS): Promise<ReadOnlyGit | string | undefined> {
  const opened = await openRepository(place, limitMs);
  return typeof opened === "object" ? opened.git : opened;
}

/**
 * Resolves to `undefined` if the folder is in no repository, and to a reason, in sentences, if the repository must not be read
 * or git does not read it.
 */
export async function openRepository(
  place: GitContext,
  limitMs = LIMIT_MS,
): Promise<OpenedRepository | string | undefined> {
  const program = await findGit(place);
  if (program === undefined) {
    const isRepository = (await nearestDotGit(place.cwd)) !== undefined;
    return isRepository ? "No git was found on the PATH of the session: install git." : undefined;
  }
  const withSettings =
    (settings: readonly Setting[], input = ""): ReadOnlyGit =>
    async (...args) =>
      run([...place.wrapper, program, "--no-pager", ...args], {
        cwd: place.cwd,
        env: { ...plainEnvironment(place.environment), ...asVariables([...SETTINGS, ...settings]) },
        limitMs,
        input,
        mostBytes: place.mostBytes,
      });
  const git = withSettings([]);
  // Runs beside `rev-parse`, which reads every file of settings too.
  const names = git("config", "--list", "--name-only", "-z").then(
    (found) => ({ found }),
    (error: unknown) => ({ error }),
  );
  let repository: Repository;
  try {
    const found = await git("rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-toplevel");
    const [gitDir = "", commonDir = "", top = ""] = found.toString().split("\n");
    repository = { gitDir, commonDir: resolve(place.cwd, commonDir), top };
    const fault = await repositoryFault(place.cwd, repository, place.allowed);
    if (fault !== undefined) return fault;
  } catch (error) {
    return explainFailure(error, place.cwd);
  }
  const listed = await names;
  if ("error" in listed) return unreadableText(listed.error);
  const off = disableDrivers(listed.found);
  if (!off) return "Its configuration has filter drivers that cannot be switched off.";
  const readObjects = async (ids: readonly string[]) =>
    withSettings(off, ids.map((id) => `${id}\n`).join(""))("--no-replace-objects", "cat-file", "--batch");
  return { git: withSettings(off), readObjects, repository, hasFilters: off.length > 0 };
}

const IN_DATA = "The folder lies in the data of a repository: in a .git, or in a bare one, which is not read.";

/** Tells a damaged repository from none: git finds neither, but a damaged one has a `.git`. */
async function explainFailure(error: unknown, cwd: string): Promise<string | undefined> {
  // Replaces git's words, because the setting named there is ours.
  if (error instanceof GitError && error.message.startsWith("cannot use bare repository")) return IN_DATA;
  const isNone = error instanceof GitError && error.message.startsWith("not a git repository");
  if (!isNone) return unreadableText(error);
  const dotGit = await nearestDotGit(cwd);
  return dotGit === undefined ? undefined : `${unreadableText(error)} There is ${dotGit}, which git cannot use.`;
}

export type Setting = readonly [key: string, value: string];

/** Settings with precedence over every file. */
export const SETTINGS: readonly Setting[] = [
  // Refuses a bare repository in an ordinary folder, where four text files make one.
  ["safe.bareRepository", "explicit"],
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  ["diff.external", ""],
  // Otherwise a file with new times but old content would show a head without a change.
  ["diff.autoRefreshIndex", "true"],
  ["diff.suppressBlankEmpty", "false"],
  ["core.quotePath", "false"],
];

/** Maximum number of filter drivers. A repository with more is not worth a look. */
const MAX_DRIVERS = 500;

/**
 * Switches off filter drivers, which clean files by a command before a comparison. A driver's name can hold any character
 * (`a=b`, a dot, a line break) or none. Returns `undefined` if a driver cannot be switched off.
 */
function disableDrivers(names: Buffer): Setting[] | undefined {
  const text = names.toString("utf8");
  // A variable cannot hold a name of invalid UTF-8.
  if (!Buffer.from(text, "utf8").equals(names)) return undefined;
  const drivers = new Set<string>();
  for (const key of text.split("\0")) {
    const last = key.lastIndexOf(".");
    if (key.startsWith("filter.") && last > "filter".length) drivers.add(key.slice("filter.".length, last));
  }
  if (drivers.size > MAX_DRIVERS) return undefined;
  return [...drivers].flatMap((driver) =>
    [
      ["clean", ""],
      ["smudge", ""],
      ["process", ""],
      ["required", "false"],
    ].map(([name, value = ""]): Setting => [`filter.${driver}.${String(name)}`, value]),
  );
}

/** Puts each key into a variable of its own, because `-c` would split a key at the first `=`. */
export function asVariables(settings: readonly Setting[]): Record<string, string> {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) };
  for (const [index, [key, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${String(index)}`] = key;
    variables[`GIT_CONFIG_VALUE_${String(index)}`] = value;
  }
  return variables;
}

/** Variables with settings files that the operator wants read. Any other variable of git could lead elsewhere. */
const KEPT_VARIABLES = new Set([
  "GIT_CONFIG_GLOBAL",
  "GIT_CONFIG_NOSYSTEM",
  "GIT_CONFIG_SYSTEM",
  "GIT_CEILING_DIRECTORIES",
]);

export function plainEnvironment(environment: GitContext["environment"]): Record<string, string> {
  const kept = Object.entries(environment).filter(
    ([name]) => !name.toUpperCase().startsWith("GIT_") || KEPT_VARIABLES.has(name),
  );
  return {
    ...Object.fromEntries(kept),
    // Allows no protocol, so that nothing is fetched and no helper, ssh or program of a remote starts.
    GIT_ALLOW_PROTOCOL: "none",
    GIT_NO_LAZY_FETCH: "1",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    // Keeps the reasons of git in English, because this server parses and shows them.
    LC_ALL: "C",
  };
}

/** Finds git, but never in the session's folder or through a relative entry of `PATH`. */
export async function findGit({ cwd, environment }: GitContext): Promise<string | undefined> {
  const real = await realpath(cwd).catch(otherwise(cwd));
  const folders = real === sep ? [] : [real];
  const path = Object.entries(environment).find(([name]) => name.toUpperCase() === "PATH")?.[1] ?? "";
  const names = process.platform === "win32" ? ["git.exe"] : ["git"];
  for (const entry of await programFolders(path, folders)) {
    for (const name of names) {
      const file = join(entry, name);
      const program = await realpath(file).catch(() => undefined);
      if (program === undefined || folders.some((folder) => isInside(program, folder))) continue;
      if (await isExecutable(file)) return file;
    }
  }
  return undefined;
}
