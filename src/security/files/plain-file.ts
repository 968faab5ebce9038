import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";

/**
 * Files that another program may have put there. A pipe in place of one would keep its reader waiting for ever, and one that is
 * larger than a string can be would end this server.
 */

/** Opens for reading without blocking. Rejects unless it is a regular file. */
export async function openPlainFile(file: string): Promise<FileHandle> {
  // Windows has neither the flag nor such pipes.
  const nonBlocking = process.platform === "win32" ? 0 : constants.O_NONBLOCK;
  const handle = await open(file, constants.O_RDONLY | nonBlocking);
  try {
    if (!(await handle.stat()).isFile()) throw new Error(`${file} is no regular file`);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Its text. Rejects where it is no regular file, or holds more than `mostBytes`. */
export async function readSmall(file: string, mostBytes: number): Promise<string> {
  const handle = await openPlainFile(file);
  try {
    const { size } = await handle.stat();
    if (size > mostBytes) throw new Error(`${file} holds more than ${String(mostBytes)} bytes`);
    // What is appended meanwhile is left for the next reader.
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size), 0, size, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await handle.close();
  }
}
