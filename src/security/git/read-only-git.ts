import { spawn } from "node:child_process";
import { join, resolve, sep } from "node:path";
import { hasPipe } from "../descriptors.ts";
import { otherwise, realpath, stat } from "../files/limited.ts";
import { isInside } from "../paths.ts";
import { isExecutable, programFolders } from "../programs.ts";
import { repositoryFault } from "./repository.ts";

/**
 * git for read-only actions in an untrusted repository: no file on disk can make it start a program, use a network or read an
 * object store outside the folder. Every read-only git command of this server goes through here.
 */

export interface GitPlace {
  readonly cwd: string;
  /** That of a Claude Code: what a repository might get to run sees no secret of the server. */
  readonly environment: Readonly<Record<string, string>>;
  /** Words before the command, [] for none. */
  readonly wrapper: readonly string[];
  /** Sets of folders, one of each of which must hold what is read; an empty set allows any. */
  readonly allowed: readonly (readonly string[])[];
}

/** Stdout of one git command; rejects where git fails, takes too long or says too much. */
export type ReadOnlyGit = (...args: string[]) => Promise<Buffer>;

const MAX_BYTES = 1024 * 1024;
const LIMIT_MS = 10_000;

/** Undefined where there is no git or no repository with a work tree; a reason where the repository is not to be read. */
export async function readOnlyGit(place: GitPlace, limitMs = LIMIT_MS): Promise<ReadOnlyGit | string | undefined> {
  const program = await gitProgram(place);
  if (program === undefined) return undefined;
  const withSettings =
    (settings: readonly Setting[]): ReadOnlyGit =>
    async (...args) =>
      run([...place.wrapper, program, "--no-pager", ...args], {
        cwd: place.cwd,
        env: { ...plainEnvironment(place.environment), ...asVariables([...SETTINGS, ...settings]) },
        limitMs,
      });
  const git = withSettings([]);
  const found = await git("rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-toplevel").catch(() => "");
  const [gitDir, commonDir, top] = found.toString().split("\n");
  if (!gitDir || !commonDir || !top) return undefined;
  const repository = { gitDir, commonDir: resolve(place.cwd, commonDir), top };
  const fault = await repositoryFault(place.cwd, repository, place.allowed);
  if (fault !== undefined) return fault;
  const names = await git("config", "--list", "--name-only", "-z").catch(() => undefined);
  const off = names && withoutDrivers(names);
  return off ? withSettings(off) : "Its configuration cannot be read.";
}

type Setting = readonly [key: string, value: string];

/** Settings of the command line go before those of every file. */
const SETTINGS: readonly Setting[] = [
  // A repository that lies in the open, where four text files make one, is none.
  ["safe.bareRepository", "explicit"],
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  ["diff.external", ""],
];

/** Of a repository with more there is nothing to see that is worth it. */
const MAX_DRIVERS = 500;

/**
 * Filter drivers clean files before they are compared, by a command: each is switched off by its name, which can hold any
 * character (`a=b`, a dot, a line break) or none. Undefined where one cannot be.
 */
function withoutDrivers(names: Buffer): Setting[] | undefined {
  const text = names.toString("utf8");
  // Such a name could not be said in a variable.
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

/** Each key in a variable of its own: `-c` would split it at the first `=`. */
function asVariables(settings: readonly Setting[]): Record<string, string> {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) };
  for (const [index, [key, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${String(index)}`] = key;
    variables[`GIT_CONFIG_VALUE_${String(index)}`] = value;
  }
  return variables;
}

/** Which files of settings the operator wants read; everything else of git's variables could lead elsewhere. */
const KEPT_VARIABLES = new Set([
  "GIT_CONFIG_GLOBAL",
  "GIT_CONFIG_NOSYSTEM",
  "GIT_CONFIG_SYSTEM",
  "GIT_CEILING_DIRECTORIES",
]);

function plainEnvironment(environment: GitPlace["environment"]): Record<string, string> {
  const kept = Object.entries(environment).filter(
    ([name]) => !name.toUpperCase().startsWith("GIT_") || KEPT_VARIABLES.has(name),
  );
  return {
    ...Object.fromEntries(kept),
    // Nothing is fetched, by no protocol, so that no helper, ssh or remote's program starts.
    GIT_ALLOW_PROTOCOL: "none",
    GIT_NO_LAZY_FETCH: "1",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
  };
}

/** Never one that lies in the session's folder, nor where a relative entry of PATH leads. */
async function gitProgram({ cwd, environment }: GitPlace): Promise<string | undefined> {
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

interface Run {
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly limitMs: number;
}

/** In a process group of its own, which ends as a whole. */
async function run([command = "git", ...args]: readonly string[], { cwd, env, limitMs }: Run): Promise<Buffer> {
  // A spawn in a folder that does not answer would keep this whole process waiting.
  await stat(cwd).catch(otherwise(undefined));
  return new Promise((resolvePromise, reject) => {
    const isWindows = process.platform === "win32";
    const child = spawn(command, args, { cwd, env, detached: !isWindows, stdio: ["ignore", "pipe", "ignore"] });
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = (why: string) => {
      try {
        if (isWindows || child.pid === undefined) child.kill("SIGKILL");
        else process.kill(-child.pid, "SIGKILL");
      } catch {
        // It has ended, or is another user's.
      }
      child.stdout.destroy();
      reject(new Error(why));
    };
    const timer = setTimeout(() => {
      end(`git took longer than ${String(limitMs)} ms`);
    }, limitMs);
    child.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    // Node makes none where it runs out of descriptors; the error comes next.
    if (!hasPipe(child.stdout)) return;
    child.stdout.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) end(`git wrote more than ${String(MAX_BYTES)} bytes`);
      else chunks.push(chunk);
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      if (code === 0) resolvePromise(Buffer.concat(chunks));
      else reject(new Error(`git ended with ${String(code)}`));
    });
  });
}
