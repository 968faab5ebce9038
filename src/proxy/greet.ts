import type { Socket } from "node:net";
import { AbsentError, RefusedError, SettingsError } from "./failures.ts";
import { buildId } from "../config/version.ts";
import { connectByName, isNotListening } from "../daemon/socket.ts";
import { firstLine, otherProtocol, PROTOCOL, readDaemonHello, type ClientHello } from "../daemon/wire.ts";
import { readClientFile } from "./own-server.ts";

/** Exchange of hellos between a proxy and a daemon. */

export interface GreetOptions {
  readonly folders: readonly string[];
  readonly name: string;
  readonly hello: ClientHello;
  /** Session ids of the conversation so far. */
  readonly sessions?: ClientHello["sessions"] | undefined;
}

/** Returns the hello of this process's client. `argv`: arguments of `serve`. */
export function buildHello(argv: readonly string[], purpose: ClientHello["purpose"] = "mcp"): ClientHello {
  const { env } = process;
  const variables = Object.entries(env).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  const configFile = readClientFile({ argv, env });
  return {
    protocol: PROTOCOL,
    purpose,
    cwd: startFolder(),
    argv,
    environment: Object.fromEntries(variables),
    ...(configFile && { configFile }),
    ...(purpose === "operations" && { build: buildId() }),
    commandLine: process.argv,
    clientPid: process.ppid,
  };
}

/**
 * Connects to the daemon `name` and exchanges hellos. Rejects with `RefusedError`, with `SettingsError` if only other settings
 * or another build help, or with `AbsentError`.
 */
export async function greet({ folders, hello, name, sessions }: GreetOptions, ms: number): Promise<Socket> {
  const socket = await connectByName(folders, name).catch((error: unknown) => {
    throw isNotListening(error) ? new AbsentError(error) : error;
  });
  // Ignored, because "close" follows.
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

/** Returns the start folder even if deleted, so that the call that needs the folder reports the fault. */
function startFolder(): string {
  try {
    return process.cwd();
  } catch {
    return process.env["PWD"] ?? "/";
  }
}
