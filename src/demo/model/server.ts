/**
 * Scripted model: a Messages API of Anthropic on loopback, with answers from scripts, so that Claude Code runs offline. Manual:
 * docs/scripted-model.md.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

import { z } from "zod";
import { parseJson } from "../../domain/json.ts";

import { Conversations, Gates } from "./conversations.ts";
import { deliver } from "./deliver.ts";
import { sendError } from "./faults.ts";
import { Records, type RequestRecord } from "./records.ts";
import { betasOf, callerOf, digestOf, imagesIn, lastUserText, MessagesRequest, textsOf, textsTold } from "./request.ts";
import type { Script } from "./script.ts";

export type { RequestRecord } from "./records.ts";

export interface ScriptedModelOptions {
  /** For conversations without a script in their prompts. */
  readonly script?: Script;
  /** Default: a free port. */
  readonly port?: number;
  /** Called for each request on arrival, before the answer. */
  readonly log?: (line: RequestRecord) => void;
}

export interface ScriptedModel {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** The last 10,000 requests, oldest first. */
  readonly requests: readonly RequestRecord[];
  /** Opens a gate permanently: waiting and later requests pass. */
  release(gate: string): void;
  /** Resolves to the first request, past or future, accepted by `predicate`. Rejects on abort of `signal` and on `close()`. */
  waitForRequest(predicate: (request: RequestRecord) => boolean, signal?: AbortSignal): Promise<RequestRecord>;
  /**
   * Returns variables to direct Claude Code to `url`, and away from every other host. With `plan`, Claude Code is signed in to a
   * subscription and reads `plan` of scripts; otherwise a key pays.
   */
  environment(configDir: string, options?: { readonly plan?: boolean }): Record<string, string>;
  /** Breaks all connections at once. */
  close(): Promise<void>;
}

/** State common to all requests. */
interface ModelContext {
  readonly conversations: Conversations;
  readonly gates: Gates;
  note(record: Omit<RequestRecord, "seq">): void;
}

/** Starts the server on 127.0.0.1. Rejects if the port is taken. */
export async function startScriptedModel(options: ScriptedModelOptions = {}): Promise<ScriptedModel> {
  const records = new Records();
  const gates = new Gates();
  const context: ModelContext = {
    conversations: new Conversations(options.script),
    gates,
    note(record) {
      const noted = records.add(record);
      options.log?.(noted);
    },
  };
  const server = createServer((request, response) => void answer(context, request, response));
  // Long, because Claude Code reuses connections, and an end between two requests would look like a fault.
  server.keepAliveTimeout = 600_000;
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${String(portOf(server))}`;
  return {
    url,
    requests: records.list,
    release: (gate) => gates.release(gate),
    waitForRequest: async (predicate, signal) => records.waitFor(predicate, signal),
    environment: (configDir, { plan = false } = {}) => environmentFor(url, { configDir, plan }),
    async close() {
      records.close();
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the scripted model listens on no port");
  return address.port;
}

function environmentFor(
  url: string,
  { configDir, plan }: { readonly configDir: string; readonly plan: boolean },
): Record<string, string> {
  return {
    ANTHROPIC_BASE_URL: url,
    [plan ? "CLAUDE_CODE_OAUTH_TOKEN" : "ANTHROPIC_API_KEY"]: "scripted-model",
    CLAUDE_CONFIG_DIR: configDir,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    // Otherwise an MCP server that does not answer could delay the first turn by 30 s.
    MCP_TIMEOUT: "10000",
    NO_PROXY: "127.0.0.1",
  };
}

const MAX_BYTES = 32 * 1024 * 1024;
const MODELS = ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"];

/** Serves a request; never rejects. */
async function answer(context: ModelContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  try {
    const body = await read(request);
    if (body === undefined) sendError(response, { status: 413, message: "The request is longer than 32 MiB" });
    else await route(context, { request, response, body, signal: gone.signal });
  } catch (error) {
    if (gone.signal.aborted) return;
    if (response.headersSent) response.destroy();
    else sendError(response, { status: 500, message: `Scripted model: ${String(error)}` });
  }
}

/** Returns the body; `undefined` if longer than `MAX_BYTES`. */
async function read(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    bytes += chunk.length;
    if (bytes <= MAX_BYTES) chunks.push(chunk);
  }
  return bytes > MAX_BYTES ? undefined : Buffer.concat(chunks).toString("utf8");
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: string;
  readonly signal: AbortSignal;
}

async function route(context: ModelContext, exchange: Exchange): Promise<void> {
  const { request, response, body } = exchange;
  const { method = "GET", url = "/" } = request;
  const [path] = url.split("?");
  const endpoint = `${method} ${path ?? ""}`;
  if (endpoint === "POST /v1/messages") return messages(context, exchange);
  context.note({ ...recordOf(request), served: { none: "not a message" } });
  if (endpoint === "POST /v1/messages/count_tokens") sendJson(response, { input_tokens: Math.ceil(body.length / 4) });
  else if (endpoint === "GET /v1/models") sendJson(response, modelList());
  else if (endpoint === "GET /" || endpoint === "HEAD /") sendJson(response, { scripted: true });
  else sendError(response, { status: 404, message: `${endpoint} is not served by the scripted model` });
}

async function messages(context: ModelContext, { request, response, body, signal }: Exchange): Promise<void> {
  const raw = parseJson(body);
  const parsed = MessagesRequest.safeParse(raw);
  if (!parsed.success) {
    context.note({ ...recordOf(request), served: { none: "not a message" } });
    sendError(response, { status: 400, message: `The request is not valid:\n${z.prettifyError(parsed.error)}` });
    return;
  }
  const { model, stream = false } = parsed.data;
  const answered = context.conversations.answer(parsed.data, callerOf(request.headers, parsed.data));
  context.note({ ...recordOf(request, parsed.data), digest: digestOf(raw), served: answered.served });
  if ("error" in answered) {
    sendError(response, answered.error);
    return;
  }
  const fault = "fault" in answered.served ? answered.served.fault : undefined;
  await deliver(response, { reply: answered.reply, fault, model, stream, gates: context.gates, signal });
}

function recordOf(request: IncomingMessage, message?: MessagesRequest): Omit<RequestRecord, "seq" | "served"> {
  const { sessionId, agentId } = callerOf(request.headers, message);
  return {
    time: Date.now(),
    method: request.method ?? "GET",
    path: request.url ?? "/",
    sessionId,
    agentId,
    subagent: agentId !== undefined,
    betas: betasOf(request.headers),
    ...(message ? contentOf(message) : NO_CONTENT),
  };
}

const NO_CONTENT = {
  model: undefined,
  stream: false,
  tools: [],
  system: "",
  thinking: undefined,
  outputConfig: {},
  told: "",
  lastUserText: "",
  digest: "",
  images: 0,
};

function contentOf(message: MessagesRequest) {
  return {
    model: message.model,
    stream: message.stream ?? false,
    tools: message.tools?.flatMap(({ name }) => name ?? []) ?? [],
    system: textsOf(message.system).join("\n"),
    thinking: message.thinking,
    outputConfig: message.output_config ?? {},
    told: textsTold(message).join("\n"),
    lastUserText: lastUserText(message),
    digest: "",
    images: message.messages.reduce((sum, { content }) => sum + imagesIn(content), 0),
  };
}

function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function modelList(): object {
  const data = MODELS.map((id) => ({ type: "model", id, display_name: id, created_at: "2026-01-01T00:00:00Z" }));
  return { data, has_more: false, first_id: MODELS[0], last_id: MODELS.at(-1) };
}
