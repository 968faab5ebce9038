import { rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { addressIn, existingFolders } from "./folders.ts";
import { connectTo, isRefusal, listenIn } from "./socket.ts";

/**
 * Of several clients that need the same daemon, one starts it. It holds a socket meanwhile, not a file: the kernel tells when the
 * holder is dead, whatever became of its pid, and those who wait see the connection end.
 */

/**
 * Resolves to what ends the turn of this process; to undefined after the turn of another has ended, or after `ms`. Should two take
 * a turn from a dead process at once, two daemons are started, of which one gets the name.
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
  try {
    await listenIn(server, folders, file);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
    await otherTurn(folders, file, ms);
    return undefined;
  }
  return () => {
    // Removes the socket as well.
    server.close();
    for (const socket of waiting) socket.destroy();
  };
}

async function otherTurn(folders: readonly string[], file: string, ms: number): Promise<void> {
  for (const folder of await existingFolders(folders)) {
    const path = addressIn(folder, file);
    try {
      const socket = await connectTo(path);
      await Promise.race([once(socket.resume(), "close"), sleep(ms, undefined, { ref: false })]);
      socket.destroy();
      return;
    } catch (error) {
      if (isRefusal(error)) await rm(path, { force: true });
    }
  }
}
