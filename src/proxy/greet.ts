import type { Socket } from "node:net";
import { AbsentError, RefusedError } from "./failures.ts";
import { connectByName, isAbsent } from "../daemon/socket.ts";
import { firstLine, PROTOCOL, readDaemonHello, type ClientHello } from "../daemon/wire.ts";

/** Where to look for which daemon, and what for. */
export interface Meeting {
  readonly folders: readonly string[];
  readonly name: string;
  readonly purpose?: ClientHello["purpose"];
}

/** Resolves to a connection to the daemon of this name, which has said hello. Rejects with RefusedError, or with AbsentError. */
export async function greet({ folders, name, purpose = "mcp" }: Meeting, ms: number): Promise<Socket> {
  const socket = await connectByName(folders, name).catch((error: unknown) => {
    throw isAbsent(error) ? new AbsentError(error) : error;
  });
  // What ends it is told by "close".
  socket.on("error", () => undefined);
  const hello: ClientHello = {
    protocol: PROTOCOL,
    purpose,
    cwd: startedIn(),
    commandLine: process.argv,
    clientPid: process.ppid,
  };
  socket.write(`${JSON.stringify(hello)}\n`);
  try {
    const { isEnding, refused } = readDaemonHello(await firstLine(socket, Math.max(1, ms)));
    if (refused === undefined) return socket;
    throw isEnding ? new Error(refused) : new RefusedError(refused);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** A folder that was deleted meanwhile is named too: the call that is to work in it says so. */
function startedIn(): string {
  try {
    return process.cwd();
  } catch {
    return process.env["PWD"] ?? "/";
  }
}
