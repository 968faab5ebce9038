import { randomBytes } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import { existingFolders, isPipePrefix } from "./socket-folders.ts";
import { isDead, listenIn } from "./socket.ts";
import type { restartCommand } from "./start-daemon.ts";
import { constants } from "../config/constants.ts";
import { ENDED_SUFFIX, readEnded, type EndedShim } from "../shim/ended.ts";

/** Sockets of shims, beside the sockets of their daemons: `DAEMON.XXXXXXXX.shim`, with 8 hex digits. */

const SUFFIX = /\.[0-9a-f]{8}\.shim$/;

interface DaemonLocation {
  readonly folders: readonly string[];
  /** Name of the daemon. */
  readonly name: string;
  readonly stateFolder: string;
}

/**
 * Returns the shim settings of a server; `undefined` if it gets no shims. With `restart`, a shim starts its dead daemon again.
 */
export function shimSettings(
  { folders, name, stateFolder }: DaemonLocation,
  restart?: ReturnType<typeof restartCommand>,
) {
  const { keepMs, shim } = constants();
  if (!shim || process.platform === "win32") return undefined;
  return {
    daemon: name,
    stateFolder,
    keepMs,
    restart,
    newAddress: async () => newShimAddress(folders, name),
    findSockets: async () => findLivingShims(folders, name),
  };
}

/** Returns an unused path in the first folder that accepts a socket. Throws `ConfigError` if no folder does. */
async function newShimAddress(folders: readonly string[], name: string): Promise<string> {
  const server = createServer();
  const path = await listenIn(server, folders, `${name}.${randomBytes(4).toString("hex")}.shim`);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return path;
}

/** Lists shim sockets of all daemons, including sockets of dead shims. */
export async function listShimSockets(folders: readonly string[]): Promise<string[]> {
  return (await listFiles(folders)).filter((path) => SUFFIX.test(path));
}

async function listFiles(folders: readonly string[]): Promise<string[]> {
  // Skips pipes: Windows has no shims.
  const found = await existingFolders(folders.filter((folder) => !isPipePrefix(folder)));
  const all = found.map(async (folder) => (await readdir(folder)).map((file) => join(folder, file)));
  return (await Promise.all(all)).flat();
}

export interface EndedDaemonShim extends EndedShim {
  /** Name of the shim's daemon. */
  readonly daemon: string;
}

/** Reads the files of shims that have ended processes unasked, for all daemons. */
export async function readEndedShims(folders: readonly string[]): Promise<EndedDaemonShim[]> {
  const read = (await endedFiles(folders)).map(async (file) => {
    const ended = await readEnded(file);
    return ended ? [{ daemon: daemonOf(file.slice(0, -ENDED_SUFFIX.length)), ...ended }] : [];
  });
  return (await Promise.all(read)).flat();
}

async function endedFiles(folders: readonly string[]): Promise<string[]> {
  const files = await listFiles(folders);
  return files.filter((path) => path.endsWith(ENDED_SUFFIX) && SUFFIX.test(path.slice(0, -ENDED_SUFFIX.length)));
}

/** Retention of files of `readEndedShims`, ms. Long enough for a later server to report the ended sessions. */
const KEPT_MS = 2_592_000_000;

async function removeOldFiles(folders: readonly string[]): Promise<void> {
  for (const file of await endedFiles(folders)) {
    const { mtimeMs = Date.now() } = (await stat(file).catch(() => undefined)) ?? {};
    if (Date.now() - mtimeMs > KEPT_MS) await rm(file, { force: true });
  }
}

/** Lists living shims of the daemon `name`. Removes sockets of its dead shims, and old files. */
async function findLivingShims(folders: readonly string[], name: string): Promise<string[]> {
  await removeOldFiles(folders);
  const living: string[] = [];
  for (const path of await listShimSockets(folders)) {
    if (daemonOf(path) !== name) continue;
    if (await isDead(path)) await rm(path, { force: true });
    else living.push(path);
  }
  return living;
}

/** Returns the name of the daemon that has the shim at `path`. */
export function daemonOf(path: string): string {
  return basename(path).replace(SUFFIX, "");
}
