import { randomBytes } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import { existingFolders, isOfPipes } from "./folders.ts";
import { isDead, listenIn } from "./socket.ts";
import type { restartOf } from "./start.ts";
import { constants } from "../config/constants.ts";
import { ENDED_SUFFIX, readEnded, type EndedShim } from "../shim/ended.ts";

/** Sockets of the shims of daemons, beside those of the daemons: `NAME.8 hex digits.shim`. */

const SUFFIX = /\.[0-9a-f]{8}\.shim$/;

interface Place {
  readonly folders: readonly string[];
  /** Of the daemon. */
  readonly name: string;
  readonly stateFolder: string;
}

/** What a server needs to know of its shims; undefined where it is to have none. `restart` is what starts it again. */
export function shimSettings({ folders, name, stateFolder }: Place, restart?: ReturnType<typeof restartOf>) {
  const { keepMs, shim } = constants();
  if (!shim || process.platform === "win32") return undefined;
  return {
    daemon: name,
    stateFolder,
    keepMs,
    restart,
    newAddress: async () => newShimAddress(folders, name),
    found: async () => livingShims(folders, name),
  };
}

/** A path that no shim has, in the first folder in which it can listen. Throws ConfigError where it can in none. */
async function newShimAddress(folders: readonly string[], name: string): Promise<string> {
  const server = createServer();
  const path = await listenIn(server, folders, `${name}.${randomBytes(4).toString("hex")}.shim`);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return path;
}

/** Of all daemons, those of dead shims too. */
export async function shimSockets(folders: readonly string[]): Promise<string[]> {
  return (await filesIn(folders)).filter((path) => SUFFIX.test(path));
}

async function filesIn(folders: readonly string[]): Promise<string[]> {
  // Where pipes are in place of folders, there are no shims.
  const found = await existingFolders(folders.filter((folder) => !isOfPipes(folder)));
  const all = found.map(async (folder) => (await readdir(folder)).map((file) => join(folder, file)));
  return (await Promise.all(all)).flat();
}

export interface GivenUp extends EndedShim {
  /** The name of the shim's daemon. */
  readonly daemon: string;
}

/** Shims of all daemons that have ended processes without being asked, as far as their files are there. */
export async function givenUpShims(folders: readonly string[]): Promise<GivenUp[]> {
  const read = (await endedFiles(folders)).map(async (file) => {
    const ended = await readEnded(file);
    return ended ? [{ daemon: daemonOf(file.slice(0, -ENDED_SUFFIX.length)), ...ended }] : [];
  });
  return (await Promise.all(read)).flat();
}

async function endedFiles(folders: readonly string[]): Promise<string[]> {
  const files = await filesIn(folders);
  return files.filter((path) => path.endsWith(ENDED_SUFFIX) && SUFFIX.test(path.slice(0, -ENDED_SUFFIX.length)));
}

/** Long enough for a server to come that says it of their sessions, ms. */
const KEPT_MS = 2_592_000_000;

async function removeOldFiles(folders: readonly string[]): Promise<void> {
  for (const file of await endedFiles(folders)) {
    const { mtimeMs = Date.now() } = (await stat(file).catch(() => undefined)) ?? {};
    if (Date.now() - mtimeMs > KEPT_MS) await rm(file, { force: true });
  }
}

/** Those of the daemon of this name. What dead shims have left is removed. */
async function livingShims(folders: readonly string[], name: string): Promise<string[]> {
  await removeOldFiles(folders);
  const living: string[] = [];
  for (const path of await shimSockets(folders)) {
    if (daemonOf(path) !== name) continue;
    if (await isDead(path)) await rm(path, { force: true });
    else living.push(path);
  }
  return living;
}

/** The name of the daemon whose shim has this socket. */
export function daemonOf(path: string): string {
  return basename(path).replace(SUFFIX, "");
}
