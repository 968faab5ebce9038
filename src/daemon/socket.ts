import { createHash } from "node:crypto";
import { link, lstat, mkdir, readdir, realpath, rm, stat } from "node:fs/promises";
import { connect, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "../config/error.ts";
import { PRODUCT } from "../domain/names.ts";

/**
 * Where the sockets of daemons are: in a folder that only their user can enter, named for the state folder. A daemon binds its
 * socket under a name of its own and links it, so that there is never a name without a listener, and removes only its own.
 */

/** The longest path of a socket that every system takes, in bytes, and the longest name below the folder. */
const MAX_PATH = 103;
const MAX_NAME = 45;

type Environment = Readonly<Record<string, string | undefined>>;

/** The first folder whose paths are short enough. Throws ConfigError when one is not the user's alone. */
export async function socketFolder(stateFolder: string, environment: Environment): Promise<string> {
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const key = createHash("sha256")
    .update(await realpath(stateFolder))
    .digest("hex")
    .slice(0, 16);
  const { XDG_RUNTIME_DIR: runtime } = environment;
  const uid = process.geteuid?.() ?? 0;
  const candidates = [
    ...(runtime?.startsWith("/") ? [join(runtime, PRODUCT, key)] : []),
    join(stateFolder, "run"),
    join(tmpdir(), `${PRODUCT}-${String(uid)}`, key),
  ];
  const folder = candidates.find((each) => Buffer.byteLength(each) + 1 + MAX_NAME <= MAX_PATH);
  if (folder === undefined) throw new ConfigError("No folder for sockets has a short path. Set XDG_RUNTIME_DIR.");
  await makePrivate(folder);
  return folder;
}

async function makePrivate(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const found = await lstat(folder);
  const isOwn = process.geteuid === undefined || found.uid === process.geteuid();
  if (!found.isDirectory() || !isOwn || (found.mode & 0o077) !== 0) {
    throw new ConfigError(`${folder} is no folder that only you can enter. Delete it, or set XDG_RUNTIME_DIR.`);
  }
}

/** Throws for a name that is no file name, or too long for a path. */
export function checkName(name: string): string {
  if (/^[\w][\w.-]*$/.test(name) && name.length <= MAX_NAME - SUFFIX.length - DRAFT_LENGTH) return name;
  throw new Error(
    `"${name.slice(0, 60)}" must be 1 to ${String(MAX_NAME - SUFFIX.length - DRAFT_LENGTH)} letters, digits, ".", "_" or "-"`,
  );
}

const SUFFIX = ".sock";
/** ".", a pid and the suffix. */
const DRAFT_LENGTH = 9;

export function socketPath(folder: string, name: string): string {
  return join(folder, `${name}${SUFFIX}`);
}

/** The sockets in the folder, by their names. */
export async function socketNames(folder: string): Promise<string[]> {
  const files = await readdir(folder);
  return files.filter((file) => file.endsWith(SUFFIX)).map((file) => file.slice(0, -SUFFIX.length));
}

/** Resolves when connected; rejects with the error of the system. */
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

/** Other errors say nothing of the daemon: one that is frozen takes no connections, and this process may be out of descriptors. */
async function isDead(path: string): Promise<boolean> {
  try {
    (await connectTo(path)).destroy();
    return false;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ECONNREFUSED";
  }
}

/** Removes what dead daemons have left. */
export async function sweep(folder: string): Promise<void> {
  for (const name of await socketNames(folder)) {
    const path = socketPath(folder, name);
    if (await isDead(path)) await rm(path, { force: true });
  }
}

/**
 * Listens under the name. Throws ConfigError where another daemon has it: of two that start at the same time, one gets it.
 * Resolves to what gives the name up again, unless another daemon has taken it meanwhile.
 */
export async function bind(server: Server, folder: string, name: string): Promise<() => Promise<void>> {
  const path = socketPath(folder, name);
  const draft = socketPath(folder, `${name}.${String(process.pid)}`);
  await rm(draft, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(draft, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const { dev, ino } = await stat(draft);
  try {
    await link(draft, path);
  } catch (error) {
    server.close();
    throw new ConfigError(`Another daemon has the name "${name}". Stop it, or choose another name.`, error);
  } finally {
    await rm(draft, { force: true });
  }
  return async () => {
    const now = await stat(path).catch(() => undefined);
    if (now?.dev === dev && now.ino === ino) await rm(path, { force: true });
  };
}
