import { chmod, link, rename, rm, stat } from "node:fs/promises";
import { connect, type Server, type Socket } from "node:net";
import { basename, join } from "node:path";
import {
  socketAddress,
  existingFolders,
  isPipePrefix,
  createPrivateFolder,
  MAX_NAME,
  listNames,
} from "./socket-folders.ts";
import { firstLine, PROTOCOL, type Question } from "./wire.ts";
import { ConfigError } from "../config/error.ts";

/**
 * Sockets of daemons. `bind` listens under a draft name and links the socket to the real name, so that a name never exists
 * without a listener. A daemon removes only its own socket.
 */

/** Throws if `name` is not a file name or is too long for a socket path. */
export function checkName(name: string): string {
  if (/^[\w][\w.-]*$/.test(name) && name.length <= MAX_NAME - SUFFIX.length - DRAFT_LENGTH) return name;
  throw new Error(
    `"${name.slice(0, 60)}" must be 1 to ${String(MAX_NAME - SUFFIX.length - DRAFT_LENGTH)} letters, digits, ".", "_" or "-"`,
  );
}

const SUFFIX = ".sock";
/** Length of `.PID` in the name of a draft. */
const DRAFT_LENGTH = 9;

/** Socket or pipe of a daemon. */
export interface DaemonSocket {
  readonly name: string;
  readonly path: string;
}

/** Lists sockets of daemons, dead ones included, in folders that are private to the user. */
export async function listSockets(folders: readonly string[]): Promise<DaemonSocket[]> {
  const found = (await existingFolders(folders)).map(async (folder) => {
    const files = await listNames(folder);
    const sockets = files.filter((file) => file.endsWith(SUFFIX));
    return sockets.map((file) => ({ name: file.slice(0, -SUFFIX.length), path: socketAddress(folder, file) }));
  });
  return (await Promise.all(found)).flat();
}

/** Connects to the daemon `name`. Rejects with the system error, `ENOENT` if there is no socket. */
export async function connectByName(folders: readonly string[], name: string): Promise<Socket> {
  let failure: unknown = Object.assign(new Error("no folder for sockets"), { code: "ENOENT" });
  for (const folder of await existingFolders(folders)) {
    try {
      return await connectTo(socketAddress(folder, `${name}${SUFFIX}`));
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** Rejects with the system error. */
export async function connectTo(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve(socket);
    });
  });
}

/** True if no process listens: there is no socket (`ENOENT`), or its process is dead. */
export function isNotListening(error: unknown): boolean {
  return isConnectionRefused(error) || (error instanceof Error && "code" in error && error.code === "ENOENT");
}

/**
 * True if the error proves the socket's process dead. Other errors prove nothing: a frozen daemon takes no connections, and
 * this process may be out of descriptors.
 */
export function isConnectionRefused(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ECONNREFUSED";
}

/** Resolves to true if the process that listened at `path` is dead. */
export async function isDead(path: string): Promise<boolean> {
  try {
    (await connectTo(path)).destroy();
    return false;
  } catch (error) {
    return isConnectionRefused(error);
  }
}

/** Time without an answer after which a daemon counts as frozen, ms. */
const FROZEN_MS = 700;

async function isFrozen(path: string): Promise<boolean> {
  const hello: Question = { protocol: PROTOCOL, purpose: "status" };
  try {
    const socket = await connectTo(path);
    socket.on("error", () => undefined);
    socket.write(`${JSON.stringify(hello)}\n`);
    const answer = firstLine(socket, FROZEN_MS);
    await answer.finally(() => socket.destroy());
    return false;
  } catch (error) {
    return !isNotListening(error);
  }
}

/** Removes sockets of dead daemons. */
export async function removeDeadSockets(folders: readonly string[]): Promise<void> {
  for (const { path } of await listSockets(folders.filter((folder) => !isPipePrefix(folder)))) await removeDead(path);
}

/** Removes the socket of a dead process, unless another process has replaced the file meanwhile. */
export async function removeDead(path: string): Promise<void> {
  const before = await fileIdentity(path);
  if (before === undefined || !(await isDead(path))) return;
  if ((await fileIdentity(path)) === before) await rm(path, { force: true });
}

/** Identifies a file. Includes the change time, because file systems reuse inode numbers at once. */
async function fileIdentity(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found && [found.dev, found.ino, found.ctimeNs].join(" ");
}

export interface BindOptions {
  readonly folders: readonly string[];
  readonly name: string;
  /** Allows taking the name from a frozen daemon, which keeps its present clients. */
  readonly mayDisplace: boolean;
}

export interface BoundSocket {
  readonly path: string;
  /** Removes the socket, unless another daemon has taken the name meanwhile. */
  readonly release: () => Promise<void>;
  /** Resolves to true if `path` is gone, because a logout or a cleaner removed the socket or its folder. */
  readonly isRemoved: () => Promise<boolean>;
}

/**
 * Listens under the name in the first usable folder. Throws `ConfigError` if another daemon has the name; of two daemons that
 * start together, only one gets the name.
 */
export async function bind(server: Server, naming: BindOptions): Promise<BoundSocket> {
  return naming.folders.every(isPipePrefix) ? bindPipe(server, naming) : bindSocket(server, naming);
}

/** A pipe has its name until its process has closed the pipe and all connections. */
async function bindPipe(server: Server, { folders, name }: BindOptions): Promise<BoundSocket> {
  try {
    const path = await listenIn(server, folders, `${name}${SUFFIX}`);
    return { path, release: async () => Promise.resolve(), isRemoved: async () => Promise.resolve(false) };
  } catch (error) {
    throw error instanceof ConfigError ? error : nameIsTaken(name, error);
  }
}

async function bindSocket(server: Server, { folders, mayDisplace, name }: BindOptions): Promise<BoundSocket> {
  const draft = await listenIn(server, folders, `${name}.${String(process.pid)}${SUFFIX}`);
  const path = join(draft, "..", `${name}${SUFFIX}`);
  const { dev, ino } = await stat(draft);
  try {
    await checkOtherFolders(folders, path, mayDisplace);
    await linkDraft(draft, path, mayDisplace);
  } catch (error) {
    server.close();
    throw nameIsTaken(name, error);
  } finally {
    await rm(draft, { force: true });
  }
  const release = async () => {
    const now = await stat(path).catch(() => undefined);
    if (now?.dev === dev && now.ino === ino) await rm(path, { force: true });
  };
  return { path, release, isRemoved: async () => (await fileIdentity(path)) === undefined };
}

export class NameTakenError extends ConfigError {}

function nameIsTaken(name: string, cause?: unknown): NameTakenError {
  return new NameTakenError(`Another daemon has the name "${name}". Stop it, or choose another name.`, cause);
}

/** Throws if a daemon of this name listens in another folder, because the first usable folder is not always the same. */
async function checkOtherFolders(folders: readonly string[], path: string, mayDisplace: boolean): Promise<void> {
  for (const folder of await existingFolders(folders)) {
    const other = join(folder, basename(path));
    if (other === path || (await fileIdentity(other)) === undefined || (await isDead(other))) continue;
    if (!mayDisplace || !(await isFrozen(other))) throw new Error(`it listens at ${other}`);
  }
}

async function linkDraft(draft: string, path: string, mayDisplace: boolean): Promise<void> {
  await removeDead(path);
  try {
    await link(draft, path);
  } catch (error) {
    if (!mayDisplace || !(await isFrozen(path))) throw error;
    await rename(draft, path);
  }
}

/** Resolves to the path of a socket to which only this user can connect. Throws `ConfigError` with the fault of each folder. */
export async function listenIn(server: Server, folders: readonly string[], file: string): Promise<string> {
  const whys: string[] = [];
  for (const folder of folders) {
    const path = socketAddress(folder, file);
    try {
      await createPrivateFolder(folder);
      await listen(server, path);
      if (!isPipePrefix(folder)) await chmod(path, 0o600);
      return path;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") throw error;
      whys.push(error instanceof ConfigError ? error.message : `${folder}: ${String(error)}.`);
    }
  }
  throw new ConfigError(`No folder takes a socket. ${whys.join(" ")}`);
}

async function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
