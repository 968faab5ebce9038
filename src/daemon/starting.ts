import { createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { addressIn, existingFolders } from "./folders.ts";
import { connectTo, listenIn, removeDead } from "./socket.ts";

/**
 * Of several clients that need the same daemon, one starts it. It holds a socket meanwhile, not a file: the kernel tells when the
 * holder is dead, whatever became of its pid, and those who wait see the connection end.
 */

/**
 * Resolves to a function that ends the turn of this process; to undefined after the turn of another process has ended, or after `ms`.
 * A process that dies in its turn leaves it to the next one.
 */
export async function takeTurn(
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
  const endTurn = () => {
    // Removes the socket as well.
    server.close();
    for (const socket of waiting) socket.destroy();
  };
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    if (await hasListened(server, folders, file)) return endTurn;
    if (await hasWaited(folders, file, ms)) return undefined;
  }
  return undefined;
}

/** An attempt fails only if another process has just ended its turn, or died in it. */
const MAX_ATTEMPTS = 5;

/** False if another process has the turn. */
async function hasListened(server: Server, folders: readonly string[], file: string): Promise<boolean> {
  try {
    await listenIn(server, folders, file);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") return false;
    throw error;
  }
}

/** Waits for the end of another process's turn, at most `ms`. False if there is none to wait for; removes the socket of a dead process. */
async function hasWaited(folders: readonly string[], file: string, ms: number): Promise<boolean> {
  for (const folder of await existingFolders(folders)) {
    const path = addressIn(folder, file);
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
