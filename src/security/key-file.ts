import { createHmac, randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/**
 * Key of a state folder: 32 random bytes in a file that only its user can read, made by the first server that needs a key.
 * Signatures are valid for all servers of the state folder, also after a restart.
 */

const KEY_FILE = "local.key";
const KEY_BYTES = 32;

/**
 * Derives a key for `purpose`, so that the key in the file is never handed out. Throws if the file cannot be made or is not the
 * user's alone.
 */
export async function keyFor(
  purpose: "environment" | "protocol-session" | "request-state" | "socket-name",
  stateFolder: string,
): Promise<Buffer> {
  return createHmac("sha256", await readOrMake(stateFolder))
    .update(purpose)
    .digest();
}

async function readOrMake(stateFolder: string): Promise<Buffer> {
  const file = join(stateFolder, KEY_FILE);
  return (await read(file)) ?? (await make(stateFolder, file)) ?? missing(file);
}

function missing(file: string): never {
  throw new Error(`${file} was removed while it was made. Try again.`);
}

/** Links the finished file into place, so that two servers making a key at a time both use the first. */
async function make(stateFolder: string, file: string): Promise<Buffer | undefined> {
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomBytes(8).toString("hex")}`;
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(randomBytes(KEY_BYTES));
    await handle.sync();
    await link(draft, file).catch((error: unknown) => {
      if (!isCode(error, "EEXIST")) throw error;
    });
  } finally {
    await handle.close();
    await rm(draft, { force: true });
  }
  return read(file);
}

/** Returns `undefined` if there is no file. */
async function read(file: string): Promise<Buffer | undefined> {
  try {
    const { mode, uid } = await stat(file);
    if (process.platform !== "win32" && (mode & 0o077) !== 0)
      throw new Error(`${file} is readable by other users. Delete it.`);
    if (process.geteuid !== undefined && uid !== process.geteuid()) throw new Error(`${file} belongs to another user.`);
    const key = await readFile(file);
    if (key.length !== KEY_BYTES) throw new Error(`${file} is damaged. Delete it: the next server makes another.`);
    return key;
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
