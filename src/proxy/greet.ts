import type { Socket } from "node:net";
import { AbsentError, RefusedError, SettingsError } from "./failures.ts";
import { buildId } from "../config/version.ts";
import { connectByName, isAbsent } from "../daemon/socket.ts";
import { firstLine, otherProtocol, PROTOCOL, readDaemonHello, type ClientHello } from "../daemon/wire.ts";
import { clientFile } from "./own-server.ts";

/** The client's first line to a daemon, and the daemon's answer. */

export interface Meeting {
  readonly folders: readonly string[];
  readonly name: string;
  readonly hello: ClientHello;
  /** Those of the conversation so far. */
  readonly sessions?: ClientHello["sessions"] | undefined;
}

/** Makes the hello of the client whose end this process is. `argv`: arguments of `serve`. */
export function ownHello(argv: readonly string[], purpose: ClientHello["purpose"] = "mcp"): ClientHello {
  const { env } = process;
  const variables = Object.entries(env).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  const configFile = clientFile({ argv, env });
  return {
    protocol: PROTOCOL,
    purpose,
    cwd: startedIn(),
    argv,
    environment: Object.fromEntries(variables),
    ...(configFile && { configFile }),
    ...(purpose === "operations" && { build: buildId() }),
    commandLine: process.argv,
    clientPid: process.ppid,
  };
}

/**
 * Resolves to a connection to the daemon of this name, which has said hello. Rejects with RefusedError, with SettingsError where
 * nothing but other settings or another build helps, or with AbsentError.
 */
export async function greet({ folders, hello, name, sessions }: Meeting, ms: number): Promise<Socket> {
  const socket = await connectByName(folders, name).catch((error: unknown) => {
    throw isAbsent(error) ? new AbsentError(error) : error;
  });
  // What ends it is told by "close".
  socket.on("error", () => undefined);
  socket.write(`${JSON.stringify({ ...hello, sessions })}\n`);
  try {
    const { isEnding, isOfClient, protocol, refused } = readDaemonHello(await firstLine(socket, Math.max(1, ms)));
    if (protocol !== PROTOCOL) throw new SettingsError(`--daemon ${name}: ${otherProtocol(PROTOCOL, protocol)}`);
    if (refused === undefined) return socket;
    if (isEnding) throw new Error(refused);
    throw isOfClient ? new SettingsError(refused) : new RefusedError(refused);
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
