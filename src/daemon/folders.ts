import { createHash } from "node:crypto";
import { lstat, mkdir, readdir, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "./environment.ts";
import { ConfigError } from "../config/error.ts";
import { PRODUCT } from "../domain/names.ts";

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

/** Of a state folder by its real path. */
export function socketCandidates(
  stateFolder: string,
  { XDG_RUNTIME_DIR: runtime }: Environment,
  platform: NodeJS.Platform = process.platform,
): string[] {
  const key = createHash("sha256").update(stateFolder).digest("hex").slice(0, 16);
  if (platform === "win32") return [`${PIPES}${PRODUCT}-${key}-`];
  return [
    ...(runtime?.startsWith("/") === true ? [join(runtime, PRODUCT, key)] : []),
    join(stateFolder, "run"),
    // One level: of a folder for everyone, no other user can replace what is directly in it. macOS's own has a long path.
    ...new Set(
      [tmpdir(), "/tmp"].map((folder) => join(folder, `${PRODUCT}-${String(process.geteuid?.() ?? 0)}-${key}`)),
    ),
  ];
}

/** Makes the state folder. Throws ConfigError where every path is too long. */
export async function socketFolders(
  stateFolder: string,
  environment: Environment,
  platform: NodeJS.Platform = process.platform,
): Promise<string[]> {
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const candidates = socketCandidates(await realpath(stateFolder), environment, platform);
  const folders = candidates.filter((each) => Buffer.byteLength(each) + 1 + MAX_NAME <= MAX_PATH);
  if (folders.length === 0) throw new ConfigError("No folder for sockets has a short path. Set XDG_RUNTIME_DIR.");
  return folders;
}

/** Those of the folders that are there and are the user's alone. In one of another user, who may make any in `/tmp`, is no daemon. */
export async function existingFolders(folders: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    folders.map(async (folder) => (isOfPipes(folder) || (await isPrivate(folder)) ? [folder] : [])),
  );
  return found.flat();
}

/** Throws ConfigError when it is there and not the user's alone. */
export async function makePrivate(folder: string): Promise<void> {
  if (isOfPipes(folder)) return;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (await isPrivate(folder)) return;
  throw new ConfigError(`${folder} is no folder that only you can enter. Delete it, or set XDG_RUNTIME_DIR.`);
}

async function isPrivate(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => undefined);
  if (!found) return false;
  const isOwn = process.geteuid === undefined || found.uid === process.geteuid();
  return found.isDirectory() && isOwn && (found.mode & 0o077) === 0;
}
