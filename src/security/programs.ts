import { execFile } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { promisify } from "node:util";

/** Programs of the machine that this server itself starts. */

const run = promisify(execFile);

/** What is tried does its work in milliseconds, ms. */
const PROBE_MS = 10_000;

/**
 * The folders of PATH that are the machine's: a relative one would be the session's, and those that npm puts in front
 * (node_modules/.bin) are the repository's in which the server was started.
 */
export function programFolders(path: string): string[] {
  return path.split(delimiter).filter((folder) => isAbsolute(folder) && !OF_A_REPOSITORY.test(folder));
}

const OF_A_REPOSITORY = /[\\/]node_modules[\\/]\.bin[\\/]*$/;

/** The program of this name in PATH. */
export function findProgram(
  name: string,
  { PATH = "" }: Readonly<Record<string, string | undefined>>,
): string | undefined {
  return programFolders(PATH)
    .map((folder) => join(folder, name))
    .find((file) => isExecutable(file));
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
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  try {
    await run(program, [...args], { timeout: PROBE_MS, env: { PATH: environment["PATH"] } });
    return undefined;
  } catch (error) {
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    return said === "" ? String(error) : said.split("\n").at(-1);
  }
}
