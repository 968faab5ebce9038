import { createHash } from "node:crypto";
import * as fs from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileAccess, otherwise, realpath } from "../../security/files/limited.ts";
import { ABSENT, contentOf, isUntouched, parseStamp, readWhole, statStamp } from "./stamp.ts";

/** Stamps paths below a folder, and reads the plain files among them. Never opens a pipe or a device, never follows a link. */

/** Maximum bytes of a file that is read, and of all files of one look. Larger files are compared by size and times. */
const [MAX_FILE_BYTES, MAX_TOTAL_BYTES] = [8 * 1024 * 1024, 64 * 1024 * 1024];
/** Number of paths examined at a time. */
const AT_A_TIME = 4;

/** Thrown when a comparison has no time left. */
export class LateError extends Error {
  override readonly name = "LateError";
}

export interface Disk {
  /** Real path of the folder. */
  readonly root: string;
  /** Time on `performance.now()` at which to give up. */
  readonly until: number;
}

interface Stamping {
  /** Former stamps: a path whose size and times are the former ones is not read. */
  readonly known?: Readonly<Record<string, string>> | undefined;
  /** Gets the bytes of each file read. */
  readonly onRead?: (path: string, bytes: Buffer) => void;
}

/** Returns the stamp of each path, `ABSENT` for a path without file or behind a link. Rejects with a `LateError`. */
export async function stampPaths(
  disk: Disk,
  paths: readonly string[],
  options: Stamping,
): Promise<Map<string, string>> {
  const stamps = new Map<string, string>();
  const isBelow = createFolderTest(disk.root);
  const budget = { left: MAX_TOTAL_BYTES };
  const rest = [...paths];
  const work = async (): Promise<void> => {
    for (let path = rest.pop(); path !== undefined; path = rest.pop()) {
      if (performance.now() > disk.until) throw new LateError("the files could not be read in time");
      const file = join(disk.root, path);
      const known = options.known?.[path];
      const found = (await isBelow(dirname(file)))
        ? await fileAccess.run(file, async () => examine(file, known, budget))
        : { stamp: ABSENT };
      stamps.set(path, found.stamp);
      if (found.bytes) options.onRead?.(path, found.bytes);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return stamps;
}

/** Returns a test for folders: false behind a link, because the files there are not the folder's. */
function createFolderTest(root: string): (folder: string) => Promise<boolean> {
  const tested = new Map<string, Promise<boolean>>();
  // Paths of git have the case of the index, those of the disk may have another.
  const inCase = (path: string) => (process.platform === "linux" ? path : path.toLowerCase());
  const test = async (folder: string): Promise<boolean> => {
    const real = await realpath(folder).catch(otherwise(undefined));
    return real !== undefined && inCase(real) === inCase(folder);
  };
  return async (folder) => {
    if (folder === root) return true;
    const known = tested.get(folder) ?? test(folder);
    tested.set(folder, known);
    return known;
  };
}

interface Found {
  readonly stamp: string;
  readonly bytes?: Buffer | undefined;
}

async function examine(file: string, known: string | undefined, budget: { left: number }): Promise<Found> {
  const found = await fs.lstat(file, { bigint: true }).catch(missing);
  if (found === undefined) return { stamp: ABSENT };
  const stamp = statStamp(found);
  if (known !== undefined && parseStamp(known).content !== "" && isUntouched(known, stamp)) return { stamp: known };
  if (found.isSymbolicLink()) return { stamp: stamp + contentOf(await fs.readlink(file)) };
  if (!found.isFile() || found.size > MAX_FILE_BYTES || found.size > budget.left) return { stamp };
  budget.left -= Number(found.size);
  const bytes = await readWhole(file, found).catch(() => undefined);
  return bytes === undefined ? { stamp } : { stamp: stamp + contentOf(bytes), bytes };
}

function missing(error: unknown): undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT" || code === "ENOTDIR") return undefined;
  throw error;
}

/** Returns the id that git gives to a file of these bytes, by the kind of `likeId`; the file must need no conversion. */
export function blobId(bytes: Buffer, likeId: string): string {
  return createHash(likeId.length === 40 ? "sha1" : "sha256")
    .update(`blob ${String(bytes.length)}\0`)
    .update(bytes)
    .digest("hex");
}
