import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { fileAccess, open } from "./limited.ts";

/**
 * Files that another program may have put there. A pipe in place of one would keep its reader waiting for ever, and one that is
 * larger than a string can be would end this server.
 */

/** Bytes that are read at a time: each part has its own time limit. */
const PART_BYTES = 65_536;

/** Opens for reading without blocking. Rejects unless it is a regular file. */
export async function openPlainFile(file: string): Promise<FileHandle> {
  // Windows has neither the flag nor such pipes.
  const nonBlocking = process.platform === "win32" ? 0 : constants.O_NONBLOCK;
  const handle = await open(file, constants.O_RDONLY | nonBlocking);
  try {
    const found = await fileAccess.run(file, async () => handle.stat());
    if (!found.isFile()) throw new Error(`${file} is no regular file`);
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

/** What an open file holds, at most `mostBytes` of it. */
export async function* partsOf(file: string, handle: FileHandle, mostBytes = Infinity): AsyncGenerator<Buffer> {
  let left = mostBytes;
  while (left > 0) {
    const part = Buffer.allocUnsafe(Math.min(left, PART_BYTES));
    const { bytesRead } = await fileAccess.run(file, async () => handle.read(part, 0, part.length, null));
    if (bytesRead === 0) return;
    left -= bytesRead;
    yield part.subarray(0, bytesRead);
  }
}

/** Its text. Rejects where it is no regular file, or holds more than `mostBytes`. */
export async function readSmall(file: string, mostBytes: number): Promise<string> {
  const handle = await openPlainFile(file);
  try {
    const { size } = await fileAccess.run(file, async () => handle.stat());
    if (size > mostBytes) throw new Error(`${file} holds more than ${String(mostBytes)} bytes`);
    const parts: Buffer[] = [];
    // What is appended meanwhile is left for the next reader.
    for await (const part of partsOf(file, handle, size)) parts.push(part);
    return Buffer.concat(parts).toString("utf8");
  } finally {
    await close(file, handle);
  }
}
