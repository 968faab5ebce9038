import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as V1Transport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { connectionOf, newClient, type ClientKind, type Connection, type Person } from "../clients/connection.ts";

/** A server over stdio, for one client. */
export interface Server extends Connection {
  readonly pid: number;
  readonly transport: StdioClientTransport | V1Transport;
  /** Returns all output on stderr so far. */
  stderr(): string;
}

/** Gives each client a separate server that ends with the test; tests of shared daemons do without. */
export const WITHOUT_DAEMON = { CLAUDE_CODE_MCP_DAEMON: "off" };

interface Start {
  args: string[];
  env: Record<string, string>;
  /** Default: the build of this checkout. */
  main?: string;
  person?: Person | undefined;
}

export async function connect(kind: ClientKind, start: Start): Promise<Server> {
  const { args, env, main = "dist/cli/main.js", person } = start;
  return connectTo(kind, [main, "serve", ...args], env, { person });
}

/** Connects to any program that speaks MCP over stdio; by default a script of Node. */
export async function connectTo(
  kind: ClientKind,
  args: string[],
  env: Record<string, string>,
  {
    command = process.execPath,
    cwd,
    person,
  }: { command?: string; cwd?: string | undefined; person?: Person | undefined } = {},
): Promise<Server> {
  const parameters = {
    ...(cwd !== undefined && { cwd }),
    command,
    args,
    env: { PATH: process.env["PATH"] ?? "", ...WITHOUT_DAEMON, ...env },
    stderr: "pipe" as const,
  };
  const transport = kind === "v1" ? new V1Transport(parameters) : new StdioClientTransport(parameters);
  let stderr = "";
  transport.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")));
  const client = newClient(kind, person);
  await connectClient(client, transport);
  const pid = transport.pid;
  if (pid === null) throw new Error("the server did not start");
  return { ...connectionOf(client), pid, transport, stderr: () => stderr };
}

async function connectClient(client: Client | V1Client, transport: StdioClientTransport | V1Transport): Promise<void> {
  if (client instanceof V1Client && transport instanceof V1Transport) return client.connect(transport);
  if (client instanceof Client && transport instanceof StdioClientTransport) return client.connect(transport);
  throw new Error("client and transport are of different kinds");
}
