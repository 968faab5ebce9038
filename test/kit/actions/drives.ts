import { DECLARED, META } from "../clients/tasks-client.ts";
import { frames, post, type HttpServer } from "../servers/http-server.ts";

/** Performs actions as a caller of a server over HTTP. */

/** Resolves with "ok", the `code` of the refusal, or the HTTP status of a refusal without a code. */
export type Drive = (server: HttpServer, token: string) => Promise<string>;

interface Refusal {
  readonly code?: string;
}

interface Message {
  readonly result?: { readonly structuredContent?: Refusal; readonly isError?: boolean };
  readonly error?: { readonly message: string; readonly data?: Refusal };
}

let sent = 0;

/** Sends a request of MCP as a client of the Tasks extension does. */
export function mcp(method: string, params: object): Drive {
  return async (server, token) => {
    sent += 1;
    const meta = { ...META, "io.modelcontextprotocol/clientCapabilities": DECLARED };
    const named = params as { name?: string; taskId?: string; uri?: string };
    const headers = {
      authorization: `Bearer ${token}`,
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      "mcp-name": named.name ?? named.taskId ?? named.uri ?? "",
    };
    const message = { jsonrpc: "2.0", id: sent, method, params: { ...params, _meta: meta } };
    const response = await server.fetch("/mcp", post(message, headers));
    // Refused by the guards before MCP.
    if (response.status === 403) return codeIn(response);
    const { error, result } = await messageIn(response);
    if (error) return error.data?.code ?? error.message;
    return result?.isError === true ? (result.structuredContent?.code ?? "no code") : "ok";
  };
}

export const tool = (name: string, args: object): Drive => mcp("tools/call", { name, arguments: args });

/** Sends a plain HTTP request, as a program with a token does. */
export function http(method: "GET" | "POST", path: string, body: object = {}): Drive {
  return async (server, token) => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await server.fetch(path, method === "GET" ? { headers } : post(body, headers));
    if (!response.ok) return codeIn(response);
    await response.body?.cancel();
    return "ok";
  };
}

export const page = (method: "GET" | "POST", path: string, body?: object): Drive =>
  http(method, `/console/api${path}`, body);

async function codeIn(response: Response): Promise<string> {
  const { code } = (await response.json()) as Refusal;
  return code ?? `${String(response.status)} without a code`;
}

async function messageIn(response: Response): Promise<Message> {
  if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true)
    return (await response.json()) as Message;
  for await (const { message } of frames(response)) if (message && "id" in message) return message;
  throw new Error("the answer is not there");
}
