import { createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { socketAddress, existingFolders } from "./socket-folders.ts";
import { connectTo, listenIn, removeDead } from "./socket.ts";

/**
 * Mutex for the start of a daemon: of several clients that need the daemon, one starts it. The mutex is a socket instead of a
 * file, so that the kernel reveals a dead holder (a pid may be reused), and waiting clients see the connection end.
 */

/**
 * Acquires the mutex. Resolves to a function that releases the mutex, or to `undefined` after another process has released it
 * or after `ms`. A process that dies leaves the mutex to the next process.
 */
export async function acquireStartMutex(
  folders: readonly string[],
  name: string,
  ms: number,
): Promise<(() => void) | undefined> {
  const file = `${name}.starting`;
  const waiting = new Set<Socket>();
  const server = createServer((socket) => {
    waiting.add(socket);
    socket.on("error", () => undefined).on("close", () => waiting.delete(socket));
  });
  const release = () => {
    // Removes the socket file as well.
    server.close();
    for (const socket of waiting) socket.destroy();
  };
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    if (await tryAcquire(server, folders, file)) return release;
    if (await waitForRelease(folders, file, ms)) return undefined;
  }
  return undefined;
}

/** Maximum number of attempts. An attempt fails only if another process has just released the mutex, or died holding it. */
const MAX_ATTEMPTS = 5;

/** Resolves to false if another process holds the mutex. */
async function tryAcquire(server: Server, folders: readonly string[], file: string): Promise<boolean> {
  try {
    await listenIn(server, folders, file);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") return false;
    throw error;
  }
}

/**
 * Waits until another process has released the mutex, at most `ms`. Resolves to false if no process holds the mutex. Removes
 * the socket of a dead process.
 */
async function waitForRelease(folders: readonly string[], file: string, ms: number): Promise<boolean> {
  for (const folder of await existingFolders(folders)) {
    const path = socketAddress(folder, file);
    try {
      const socket = await connectTo(path);
      await Promise.race([once(socket.resume(), "close"), sleep(ms, undefined, { ref: false })]);
      socket.destroy();
      return true;
    } catch {
      await removeDead(path);
    }
  }
  return false;
}
