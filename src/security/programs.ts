import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import { isInside } from "./paths.ts";

/** Programs of the machine that this server itself starts. */

const run = promisify(execFile);

/** What is tried does its work in milliseconds, ms. */
const PROBE_MS = 10_000;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Folders of PATH that are the machine's, judged by the name and by what it resolves to. A relative folder would be the session's;
 * npm puts folders of the repository (`node_modules/.bin`) first; folders in `outside` (real paths) are a project's.
 */
export function programFolders(path: string, outside: readonly string[] = []): string[] {
  return path.split(delimiter).filter((folder) => {
    if (!isAbsolute(folder)) return false;
    const names = [folder, realOf(folder)];
    return names.every((name) => !OF_A_REPOSITORY.test(name) && !outside.some((project) => isInside(name, project)));
  });
}

const OF_A_REPOSITORY = /[\\/]node_modules[\\/]\.bin[\\/]*$/;

/** `path` itself where it cannot be resolved, so that its name is judged. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/**
 * PATH for a program that this server starts for itself: this Node's folder first, because npm and many launchers begin with
 * `#!/usr/bin/env node`, then the program folders outside the project of `cwd`. Windows looks programs up differently.
 */
export function ownPath({ PATH = "" }: Environment, cwd = process.cwd()): { PATH?: string } {
  if (process.platform === "win32") return {};
  return { PATH: [dirname(process.execPath), ...programFolders(PATH, projectOf(cwd))].join(delimiter) };
}

/** Real path of the repository around `cwd`, else of `cwd`. Empty if the home folder lies in it: `~/.local/bin` is the user's. */
export function projectOf(cwd: string): string[] {
  const folder = realOf(cwd);
  const project = ancestorsOf(folder).find((each) => existsSync(join(each, ".git"))) ?? folder;
  const around = [project, folder].find((each) => !isInside(realOf(homedir()), each));
  return around === undefined ? [] : [around];
}

function ancestorsOf(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...ancestorsOf(parent)];
}

/** The program of this name in PATH. */
export function findProgram(name: string, { PATH = "" }: Environment, outside: readonly string[] = []) {
  return programFolders(PATH, outside)
    .map((folder) => join(folder, name))
    .find((file) => isExecutable(file) && !outside.some((project) => isInside(realOf(file), project)));
}

/** Of a file that this user may execute; folders have the same permission. */
export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    // Not there, in a folder that is closed to this user, or behind a link to itself: PATH may name such.
    return false;
  }
}

/** The last line that the command says where it fails; undefined where it does not. */
export async function refusalOf(
  program: string,
  args: readonly string[],
  environment: Environment,
): Promise<string | undefined> {
  try {
    await run(program, [...args], { timeout: PROBE_MS, env: ownPath(environment) });
    return undefined;
  } catch (error) {
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    return said === "" ? String(error) : said.split("\n").at(-1);
  }
}
