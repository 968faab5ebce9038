import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import { access, exists, realpath, stat } from "./files/limited.ts";
import { isInside } from "./paths.ts";

/** Finds programs of the machine for this server to start. */

const run = promisify(execFile);

/** Time limit of a probe, ms. A probe does its work in milliseconds. */
const PROBE_MS = 10_000;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the folders of `path` that belong to the machine, judged by name and by real path. A relative folder would be the
 * session's; npm puts folders of the repository (`node_modules/.bin`) first; folders in `outside` (real paths) belong to a
 * project.
 */
export async function programFolders(path: string, outside: readonly string[] = []): Promise<string[]> {
  const isProjects = (name: string) => REPOSITORY_BIN.test(name) || outside.some((project) => isInside(name, project));
  const folders = path.split(delimiter).map(async (folder) => {
    const isOfMachine = isAbsolute(folder) && ![folder, await realPathOrSelf(folder)].some(isProjects);
    return isOfMachine ? [folder] : [];
  });
  return (await Promise.all(folders)).flat();
}

const REPOSITORY_BIN = /[\\/]node_modules[\\/]\.bin[\\/]*$/;

/** Returns an unresolvable `path` unchanged, so that its name is judged. */
async function realPathOrSelf(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

/**
 * Returns `PATH` for a program that this server starts for itself: this Node's folder first, because npm and many launchers
 * begin with `#!/usr/bin/env node`, then the program folders outside the project of `cwd`. Empty on Windows, which looks
 * programs up differently.
 */
export async function ownPath({ PATH = "" }: Environment, cwd = process.cwd()): Promise<{ PATH?: string }> {
  if (process.platform === "win32") return {};
  const folders = await programFolders(PATH, await findProject(cwd));
  return { PATH: [dirname(process.execPath), ...folders].join(delimiter) };
}

/**
 * Returns the real path of the repository around `cwd`, else of `cwd`. Empty if it holds the home folder: `~/.local/bin` is the
 * user's.
 */
export async function findProject(cwd: string): Promise<string[]> {
  const folder = await realPathOrSelf(cwd);
  const home = await realPathOrSelf(homedir());
  const around = [await findRepository(folder), folder].find((each) => !isInside(home, each));
  return around === undefined ? [] : [around];
}

/** Returns `folder` outside of repositories. */
async function findRepository(folder: string): Promise<string> {
  for (let above = folder; ; above = dirname(above)) {
    if (await exists(join(above, ".git"))) return above;
    if (above === dirname(above)) return folder;
  }
}

/** Finds a program in `PATH`, outside of the projects in `outside`. */
export async function findProgram(name: string, { PATH = "" }: Environment, outside: readonly string[] = []) {
  for (const folder of await programFolders(PATH, outside)) {
    const file = join(folder, name);
    if (!(await isExecutable(file))) continue;
    const real = await realPathOrSelf(file);
    if (!outside.some((project) => isInside(real, project))) return file;
  }
  return undefined;
}

/** True for a file that the user may execute. Checks the type, because folders have an execute permission, too. */
export async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    // Missing, in a folder closed to the user, or behind a link to itself: `PATH` may name such files.
    return false;
  }
}

/** Returns the last line that a failing command writes, or `undefined` if the command succeeds. */
export async function probeProgram(
  program: string,
  args: readonly string[],
  environment: Environment,
): Promise<string | undefined> {
  try {
    await run(program, [...args], { timeout: PROBE_MS, env: await ownPath(environment) });
    return undefined;
  } catch (error) {
    const stderr = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    return stderr === "" ? String(error) : stderr.split("\n").at(-1);
  }
}
