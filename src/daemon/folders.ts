import { createHash } from "node:crypto";
import { lstat, mkdir, realpath } from "node:fs/promises";
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

/** Of a state folder by its real path. */
export function socketCandidates(stateFolder: string, { XDG_RUNTIME_DIR: runtime }: Environment): string[] {
  const key = createHash("sha256").update(stateFolder).digest("hex").slice(0, 16);
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
export async function socketFolders(stateFolder: string, environment: Environment): Promise<string[]> {
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const candidates = socketCandidates(await realpath(stateFolder), environment);
  const folders = candidates.filter((each) => Buffer.byteLength(each) + 1 + MAX_NAME <= MAX_PATH);
  if (folders.length === 0) throw new ConfigError("No folder for sockets has a short path. Set XDG_RUNTIME_DIR.");
  return folders;
}

/** Those of the folders that are there and are the user's alone. In one of another user, who may make any in `/tmp`, is no daemon. */
export async function existingFolders(folders: readonly string[]): Promise<string[]> {
  const found = await Promise.all(folders.map(async (folder) => ((await isPrivate(folder)) ? [folder] : [])));
  return found.flat();
}

/** Throws ConfigError when it is there and not the user's alone. */
export async function makePrivate(folder: string): Promise<void> {
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
