import { spawn } from "node:child_process";
import { once } from "node:events";
import { readlinkSync, realpathSync } from "node:fs";
import type { Writable } from "node:stream";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as V1Transport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { connectionOf, newClient, type ClientKind, type Connection, type Person } from "../clients/connection.ts";
import { childrenOf } from "../process-tree.ts";

/** A server over HTTP for many clients. */
export interface HttpServer {
  readonly pid: number;
  /** Origin, without a path. */
  readonly origin: string;
  /** URL of MCP. */
  readonly url: string;
  readonly token: string;
  readonly stdin: Writable;
  stdout(): string;
  stderr(): string;
  /** Resolves when the log matches `text`, a regular expression. */
  logged(text: string): Promise<void>;
  connect(kind?: ClientKind, token?: string, person?: Person): Promise<HttpConnection>;
  /** Sends a plain request with `token`, unless `init` has an Authorization header. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  signal(signal: NodeJS.Signals): void;
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>;
  close(): Promise<void>;
}

export interface HttpConnection extends Connection {
  /** Aborts all requests of the connection at once, like a client that dies. */
  vanish(): void;
}

interface Start {
  readonly args: string[];
  readonly env: Record<string, string>;
  readonly token: string;
  /** Command that executes the server's command, such as a wrapper. */
  readonly through?: readonly string[] | undefined;
}

export async function startHttp({ args, env, through = [], token }: Start): Promise<HttpServer> {
  const [program = "", ...command] = [...through, process.execPath, "dist/cli/main.js", "serve", ...args];
  const child = spawn(program, command, { env: { PATH: process.env["PATH"] ?? "", ...env }, stdio: "pipe" });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
  const exited = once(child, "exit").then(([code]) => code as number | null);
  let isGone = false;
  void exited.then(() => (isGone = true));
  const seen = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const [, found = ""] = pattern.exec(output.stderr) ?? [];
      if (pattern.test(output.stderr)) return found;
      if (isGone) throw new Error(`the server has ended: ${output.stderr}`);
      await Promise.race([once(child.stderr, "data"), exited]);
    }
  };
  const url = await seen(/"url":"([^"]+)"/);
  const wrapper = child.pid ?? 0;
  const pid = serverUnder(wrapper);
  return {
    pid,
    origin: new URL(url).origin,
    url,
    token,
    exited,
    stdin: child.stdin,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    logged: async (text) => void (await seen(new RegExp(text))),
    connect: async (kind = "modern", own = token, person) => connectOver(new URL(url), newClient(kind, person), own),
    fetch: async (path, init = {}) => {
      const headers = new Headers(init.headers);
      if (!headers.has("authorization")) headers.set("authorization", `Bearer ${token}`);
      return fetch(new URL(path, url), { ...init, headers });
    },
    signal: (signal) => {
      process.kill(pid, signal);
      // A wrapper stops with its child, but does not notice that the child goes on.
      if (signal === "SIGCONT" && wrapper !== pid) process.kill(wrapper, signal);
    },
    close: async () => {
      if (!isGone) process.kill(pid, "SIGTERM");
      await exited;
    },
  };
}

/** Returns the server's pid: a wrapper may execute the server, or start it as a child (`nsenter`). */
function serverUnder(wrapper: number): number {
  const isServer = readlinkSync(`/proc/${String(wrapper)}/exe`) === realpathSync(process.execPath);
  return isServer ? wrapper : (childrenOf(wrapper)[0] ?? wrapper);
}

/** Connects to a server that may not yet have logged its address. */
export async function connectOver(url: URL, client: Client | V1Client, token: string): Promise<HttpConnection> {
  const gone = new AbortController();
  const headers = { authorization: `Bearer ${token}` };
  const options = {
    requestInit: { headers },
    fetch: async (input: string | URL | Request, init?: RequestInit) => {
      const signals = init?.signal ? [init.signal, gone.signal] : [gone.signal];
      return fetch(input, { ...init, signal: AbortSignal.any(signals) });
    },
  };
  if (client instanceof V1Client) await client.connect(new V1Transport(url, options));
  if (client instanceof Client) await client.connect(new StreamableHTTPClientTransport(url, options));
  return { ...connectionOf(client), vanish: () => gone.abort() };
}

/** Builds the request of a program without a library, for a message of either era. */
export function post(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  };
}

export const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "by hand", version: "1" } },
};

/** Yields id and message of each part of a streamed answer. */
export async function* frames({ body }: Response): AsyncGenerator<{ id: string; message: Message | undefined }> {
  if (!body) return;
  let text = "";
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const after = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
      if (lines.every((line) => line.startsWith(":"))) continue;
      const data = after("data");
      yield { id: after("id"), message: data === "" ? undefined : (JSON.parse(data) as Message) };
    }
  }
}

export interface Message {
  id?: number;
  method?: string;
  params?: { progress?: number; data?: string };
  result?: { structuredContent?: Record<string, unknown> };
}
