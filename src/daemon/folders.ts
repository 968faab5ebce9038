import { createHash } from "node:crypto";
import { lstat, mkdir, readdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ConfigError } from "../config/error.ts";
import { PRODUCT } from "../domain/names.ts";
import { folderFault, wayFault } from "../security/private-folder.ts";

/**
 * Where the sockets of daemons are: in a folder that only their user can enter, named for the state folder. There are several
 * candidates, because a path can be too long for a socket and a file system may have none: daemons take the first in which
 * they can listen, clients look in all.
 */

/** The longest path of a socket that every system takes, and the longest name below the folder, in bytes. */
const MAX_PATH = 103;
export const MAX_NAME = 45;

/**
 * Windows has pipes, which are in one list of the whole machine. In place of a folder stands the beginning of their names. A pipe is
 * gone with the process that listens, so there is nothing to clean up, and no name can be taken from a living process.
 */
const PIPES = "\\\\.\\pipe\\";

export function isOfPipes(folder: string): boolean {
  return folder.startsWith(PIPES);
}

/** The address of a socket or a pipe. */
export function addressIn(folder: string, name: string): string {
  return isOfPipes(folder) ? `${folder}${name}` : join(folder, name);
}

/** What is in a folder, or the rest of the names of the pipes that begin as it says. */
export async function namesIn(folder: string): Promise<string[]> {
  if (!isOfPipes(folder)) return readdir(folder);
  const beginning = folder.slice(PIPES.length);
  const pipes = await readdir(PIPES);
  return pipes.flatMap((pipe) => (pipe.startsWith(beginning) ? [pipe.slice(beginning.length)] : []));
}

/**
 * Candidates for a state folder (its real path), best first. They do not depend on the environment: a client and the command that
 * looks for its daemon may differ in that, and another user may have chosen its folder.
 */
export function socketCandidates(stateFolder: string, platform: NodeJS.Platform = process.platform): string[] {
  const key = createHash("sha256").update(stateFolder).digest("hex").slice(0, 16);
  if (platform === "win32") return [`${PIPES}${PRODUCT}-${key}-`];
  const user = String(process.geteuid?.() ?? 0);
  return [join("/run/user", user, PRODUCT, key), join(stateFolder, "run"), join("/tmp", `${PRODUCT}-${user}-${key}`)];
}

/** Makes the state folder. The last of the folders always has a short path. */
export async function socketFolders(
  stateFolder: string,
  platform: NodeJS.Platform = process.platform,
): Promise<string[]> {
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const candidates = socketCandidates(await realpath(stateFolder), platform);
  return candidates.filter((each) => Buffer.byteLength(each) + 1 + MAX_NAME <= MAX_PATH);
}

/** Folders that exist and are the user's alone. In one of another user, who may make any in `/tmp`, is no daemon. */
export async function existingFolders(folders: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    folders.map(async (folder) => (isOfPipes(folder) || (await folderFault(folder)) === undefined ? [folder] : [])),
  );
  return found.flat();
}

/** Resolves to why none of the folders can hold sockets; undefined if one can. Makes nothing. */
export async function placeFault(folders: readonly string[]): Promise<string | undefined> {
  const faults = await Promise.all(
    folders.map(async (folder) => {
      if (isOfPipes(folder)) return undefined;
      if (await isThere(folder)) return folderFault(folder);
      const above = dirname(folder);
      return wayFault((await isThere(above)) ? folder : above);
    }),
  );
  return faults.includes(undefined) ? undefined : faults.join(" ");
}

async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/**
 * Makes the folder, and the product's folder above it, where no other user can change the way to it. Throws ConfigError when it is
 * not the user's alone.
 */
export async function makePrivate(folder: string): Promise<void> {
  if (isOfPipes(folder)) return;
  const above = dirname(folder);
  const fault = (await wayFault(above)) ?? (await made(above)) ?? (await wayFault(folder)) ?? (await made(folder));
  const why = fault ?? (await folderFault(folder));
  if (why !== undefined) throw new ConfigError(why);
}

/** Resolves to why the folder cannot be made; undefined also where it exists. */
async function made(folder: string): Promise<string | undefined> {
  return mkdir(folder, { mode: 0o700 }).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return undefined;
      return error instanceof Error ? `${error.message}.` : String(error);
    },
  );
}
