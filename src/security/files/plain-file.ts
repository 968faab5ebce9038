import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { fileAccess, open } from "./limited.ts";

/**
 * Reads files that another program may have replaced. A pipe would keep its reader waiting for ever, and a file larger than a
 * string can be would end this server.
 */

/** Maximum bytes of a read. Each read has a time limit of its own. */
const PART_BYTES = 65_536;

/**
 * Opens a file for reading without blocking. Rejects unless the file is regular, and for a symbolic link with `flags`
 * `O_NOFOLLOW`.
 */
export async function openPlainFile(file: string, flags = 0): Promise<FileHandle> {
  // Windows has neither `O_NONBLOCK` nor such pipes.
  const nonBlocking = process.platform === "win32" ? 0 : constants.O_NONBLOCK;
  const handle = await open(file, constants.O_RDONLY | nonBlocking | flags);
  try {
    const found = await fileAccess.run(file, async () => handle.stat());
    if (!found.isFile()) throw new Error(`${file} is not a regular file`);
    return handle;
  } catch (error) {
    await close(file, handle);
    throw error;
  }
}

/** Never rejects. */
export async function close(file: string, handle: FileHandle): Promise<void> {
  await fileAccess.run(file, async () => handle.close()).catch(() => undefined);
}

/** Reads an open file from byte `from`, at most `mostBytes` in total. */
export async function* readParts(
  file: string,
  handle: FileHandle,
  mostBytes = Infinity,
  from = 0,
): AsyncGenerator<Buffer> {
  let left = mostBytes;
  let at = from;
  while (left > 0) {
    const part = Buffer.allocUnsafe(Math.min(left, PART_BYTES));
    const { bytesRead } = await fileAccess.run(file, async () => handle.read(part, 0, part.length, at));
    if (bytesRead === 0) return;
    left -= bytesRead;
    at += bytesRead;
    yield part.subarray(0, bytesRead);
  }
}

/** Reads the text of a file. Rejects if the file is not regular or holds more than `mostBytes`. */
export async function readSmall(file: string, mostBytes: number): Promise<string> {
  const handle = await openPlainFile(file);
  try {
    const { size } = await fileAccess.run(file, async () => handle.stat());
    if (size > mostBytes) throw new Error(`${file} holds more than ${String(mostBytes)} bytes`);
    const parts: Buffer[] = [];
    // Ignores bytes appended meanwhile, which the next reader gets.
    for await (const part of readParts(file, handle, size)) parts.push(part);
    return Buffer.concat(parts).toString("utf8");
  } finally {
    await close(file, handle);
  }
}
