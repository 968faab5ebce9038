import { rm, stat } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { addressIn, existingFolders } from "./folders.ts";
import { connectTo, isRefusal, listenIn } from "./socket.ts";

/**
 * Of several clients that need the same daemon, one starts it. It holds a socket meanwhile, not a file: the kernel tells when the
 * holder is dead, whatever became of its pid, and those who wait see the connection end.
 */

/**
 * Resolves to what ends the turn of this process; to undefined after the turn of another has ended, or after `ms`. A turn that a
 * process has left by its death is over.
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
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    if (await hasListened(server, folders, file)) return endTurn;
    if (!(await isLeft(folders, file, ms))) return undefined;
  }
  return undefined;
}

/** Each round but the last has found a turn whose process had just ended. */
const MAX_ROUNDS = 5;

async function hasListened(server: Server, folders: readonly string[], file: string): Promise<boolean> {
  try {
    await listenIn(server, folders, file);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") return false;
    throw error;
  }
}

/** Whether the turn is without a process; where another process has it, resolves when it ends. */
async function isLeft(folders: readonly string[], file: string, ms: number): Promise<boolean> {
  for (const folder of await existingFolders(folders)) {
    const path = addressIn(folder, file);
    const before = await fileAt(path);
    try {
      const socket = await connectTo(path);
      await Promise.race([once(socket.resume(), "close"), sleep(ms, undefined, { ref: false })]);
      socket.destroy();
      return false;
    } catch (error) {
      // Another who has found it so may have begun a turn meanwhile.
      if (isRefusal(error) && (await fileAt(path)) === before) await rm(path, { force: true });
    }
  }
  return true;
}

/** An inode is used again at once. */
async function fileAt(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found && `${String(found.ino)} ${String(found.ctimeNs)}`;
}
