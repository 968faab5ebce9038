import { createHash } from "node:crypto";
import { constants, type BigIntStats } from "node:fs";
import * as fs from "node:fs/promises";

/**
 * Stamps of paths: `KIND.STAT.CONTENT`, short because a stored state holds up to 1,000 of them. `STAT` is a digest of size,
 * times and inode, `CONTENT` a digest of the bytes or of a link's target; both may be empty. Only the child process of
 * `walk.ts` and the server make stamps.
 */

/** Stamp of a path without a file. */
export const ABSENT = "-";

/** A file changed this recently can change again without a new time. */
const RACY_MS = 100;
/** Mark behind `STAT` of such a file. */
const RACY = "~";

/** `f` file, `e` executable file, `l` link, `d` folder, `x` anything that is never opened. */
function kindOf(found: BigIntStats): string {
  if (found.isSymbolicLink()) return "l";
  if (found.isDirectory()) return "d";
  if (!found.isFile()) return "x";
  return (found.mode & 0o100n) === 0n ? "f" : "e";
}

export function digestOf(bytes: Buffer | string, characters: number): string {
  return createHash("sha256").update(bytes).digest("base64url").slice(0, characters);
}

export const contentOf = (bytes: Buffer | string): string => digestOf(bytes, 16);

/** Returns the stamp without content. */
export function statStamp(found: BigIntStats): string {
  const mark = Date.now() - Number(found.ctimeMs) < RACY_MS ? RACY : "";
  return `${kindOf(found)}.${digestOf([found.size, found.mtimeNs, found.ctimeNs, found.ino].join(), 11)}${mark}.`;
}

/** Stamp of a submodule whose checked out commit is `commit`. */
export const submoduleStamp = (commit: string): string => `s..${contentOf(commit)}`;

interface Stamp {
  readonly kind: string;
  readonly stat: string;
  readonly content: string;
  readonly isRacy: boolean;
}

export function parseStamp(stamp: string): Stamp {
  const [kind = "", stat = "", content = ""] = stamp.split(".");
  return { kind, stat: stat.replace(RACY, ""), content, isRacy: stat.endsWith(RACY) };
}

/** True if nothing has changed between two stamps of a path, and the contents need not be read to know. */
export function isUntouched(earlier: string, later: string): boolean {
  const [a, b] = [parseStamp(earlier), parseStamp(later)];
  return a.kind === b.kind && !a.isRacy && a.stat === b.stat;
}

export function isSame(earlier: string, later: string): boolean {
  if (earlier === later) return true;
  const [a, b] = [parseStamp(earlier), parseStamp(later)];
  if (a.kind !== b.kind) return false;
  return a.content !== "" && b.content !== "" ? a.content === b.content : a.stat === b.stat;
}

/** True if two stamps differ only by times, of a file too large to be read: its content may be equal. */
export function isDoubtful(earlier: string, later: string): boolean {
  const [a, b] = [parseStamp(earlier), parseStamp(later)];
  return a.kind === b.kind && (a.content === "" || b.content === "") && earlier !== later;
}

/** Rejects if the path has become another file or a link since `found`, or has grown. */
export async function readWhole(file: string, found: BigIntStats): Promise<Buffer> {
  const flags = process.platform === "win32" ? 0 : constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const handle = await fs.open(file, constants.O_RDONLY | flags);
  try {
    const opened = await handle.stat({ bigint: true });
    if (!opened.isFile() || opened.ino !== found.ino || opened.size !== found.size) throw new Error("replaced");
    const bytes = Buffer.alloc(Number(opened.size));
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  } finally {
    await handle.close();
  }
}
