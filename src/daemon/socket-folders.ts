import { createHash } from "node:crypto";
import { lstat, mkdir, readdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ConfigError } from "../config/error.ts";
import { PRODUCT } from "../domain/names.ts";
import { folderFault, ancestorFault } from "../security/private-folder.ts";

/**
 * Folders for sockets of daemons, named for the state folder and private to the user. There are several candidates, because a
 * path can be too long for a socket and some file systems hold no sockets: daemons listen in the first usable folder, clients
 * search all.
 */

/** Longest socket path that all systems accept, and longest file name in the folder (`MAX_NAME`), in bytes. */
const MAX_PATH = 103;
export const MAX_NAME = 45;

/**
 * Windows has named pipes, all in one list of the machine, so a "folder" is a prefix of pipe names there. A pipe disappears
 * with its listening process: nothing needs cleaning up, and a living process cannot lose its name.
 */
const PIPES = "\\\\.\\pipe\\";

export function isPipePrefix(folder: string): boolean {
  return folder.startsWith(PIPES);
}

/** Returns the path of a socket, or the name of a pipe. */
export function socketAddress(folder: string, name: string): string {
  return isPipePrefix(folder) ? `${folder}${name}` : join(folder, name);
}

/** Lists the files in `folder`, or the pipes with the prefix `folder`, without the prefix. */
export async function listNames(folder: string): Promise<string[]> {
  if (!isPipePrefix(folder)) return readdir(folder);
  const beginning = folder.slice(PIPES.length);
  const pipes = await readdir(PIPES);
  return pipes.flatMap((pipe) => (pipe.startsWith(beginning) ? [pipe.slice(beginning.length)] : []));
}

/**
 * Returns the candidates for `stateFolder` (a real path), best first. Ignores the environment: a client and a command that
 * looks for its daemon may have different environments, and another user may have chosen a folder named there.
 */
export function socketCandidates(stateFolder: string, platform: NodeJS.Platform = process.platform): string[] {
  const key = createHash("sha256").update(stateFolder).digest("hex").slice(0, 16);
  if (platform === "win32") return [`${PIPES}${PRODUCT}-${key}-`];
  const user = String(process.geteuid?.() ?? 0);
  return [join("/run/user", user, PRODUCT, key), join(stateFolder, "run"), join("/tmp", `${PRODUCT}-${user}-${key}`)];
}

/** Creates the state folder. Returns the candidates that are short enough for a socket, as the last always is. */
export async function socketFolders(
  stateFolder: string,
  platform: NodeJS.Platform = process.platform,
): Promise<string[]> {
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const candidates = socketCandidates(await realpath(stateFolder), platform);
  return candidates.filter((each) => Buffer.byteLength(each) + 1 + MAX_NAME <= MAX_PATH);
}

/**
 * Keeps existing folders that are private to the user. Skips a folder of another user: every user can create folders in `/tmp`.
 */
export async function existingFolders(folders: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    folders.map(async (folder) => (isPipePrefix(folder) || (await folderFault(folder)) === undefined ? [folder] : [])),
  );
  return found.flat();
}

/** Resolves to the reason why no folder can hold sockets, or to `undefined` if one can. Creates nothing. */
export async function socketFolderFault(folders: readonly string[]): Promise<string | undefined> {
  const faults = await Promise.all(
    folders.map(async (folder) => {
      if (isPipePrefix(folder)) return undefined;
      if (await exists(folder)) return folderFault(folder);
      const above = dirname(folder);
      return ancestorFault((await exists(above)) ? folder : above);
    }),
  );
  return faults.includes(undefined) ? undefined : faults.join(" ");
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/**
 * Creates `folder`, and the product's folder above, if no other user can change the path. Throws `ConfigError` if `folder` is
 * not private to the user.
 */
export async function createPrivateFolder(folder: string): Promise<void> {
  if (isPipePrefix(folder)) return;
  const above = dirname(folder);
  const fault =
    (await ancestorFault(above)) ??
    (await creationFault(above)) ??
    (await ancestorFault(folder)) ??
    (await creationFault(folder));
  const why = fault ?? (await folderFault(folder));
  if (why !== undefined) throw new ConfigError(why);
}

/** Resolves to the reason why `folder` cannot be created; `undefined` also if `folder` exists. */
async function creationFault(folder: string): Promise<string | undefined> {
  return mkdir(folder, { mode: 0o700 }).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return undefined;
      return error instanceof Error ? `${error.message}.` : String(error);
    },
  );
}
