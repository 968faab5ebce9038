import { Client } from "@modelcontextprotocol/client";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

/**
 * `modern`, `legacy`, revisions: the v2 SDK's client with negotiation, in the older era, or held to one revision. `v1`: the v1
 * SDK's client.
 */
export type ClientKind = "modern" | "legacy" | "v1" | "2026-07-28" | "2025-11-25";
export const CLIENT_KINDS: ClientKind[] = ["modern", "legacy", "v1"];

const Action = z.looseObject({
  type: z.string(),
  requestId: z.string(),
  toolName: z.string(),
  input: z.looseObject({}),
  toolUseID: z.string().optional(),
  agentID: z.string().optional(),
  summary: z.string().optional(),
  remainingMs: z.number(),
});

const Result = z.looseObject({
  result: z.string(),
  isError: z.boolean(),
  durationMs: z.number(),
  numTurns: z.number(),
  sessionTotalTurns: z.number(),
  usage: z.looseObject({ costUsd: z.number().optional() }).optional(),
  totalCostUsd: z.number().optional(),
  sessionTotalCostUsd: z.number().optional(),
  errorSubtype: z.string().optional(),
});

const Answer = z.looseObject({
  sessionId: z.string().default(""),
  status: z.string().default(""),
  nextCursor: z.number().default(0),
  pollInterval: z.number().optional(),
  events: z
    .array(
      z.looseObject({ id: z.number(), type: z.string(), data: z.looseObject({}), timestamp: z.string().optional() }),
    )
    .default([]),
  actions: z.array(Action).default([]),
  background: z.array(z.looseObject({ id: z.string(), type: z.string(), description: z.string() })).default([]),
  result: Result.optional(),
  sessions: z.array(z.looseObject({ sessionId: z.string(), status: z.string() })).default([]),
});
export type Answer = z.infer<typeof Answer>;

/** Parses the text of a tool's answer, as a client without `structuredContent` reads it. */
export function answerIn(text: string): Answer {
  return Answer.parse(JSON.parse(text));
}

const Envelope = z.looseObject({
  isError: z.boolean().optional(),
  content: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })),
  structuredContent: z.looseObject({}).optional(),
});

export interface Failure {
  code: string;
  text: string;
}

/** A client and its connection to a server, over any transport. */
export interface Connection {
  readonly client: Client | V1Client;
  /** Resolves when the connection to the server is closed (`client.onclose`). */
  readonly gone: Promise<void>;
  /** Throws if the answer is an error, or if `text` and `structuredContent` differ. */
  call(
    tool: string,
    args: Record<string, unknown>,
    options?: { signal?: AbortSignal; onprogress?: () => void },
  ): Promise<Answer>;
  /** Like `call`, with the size of the answer: bytes of `text` or `structuredContent`, the greater number. */
  measured(tool: string, args: Record<string, unknown>): Promise<{ answer: Answer; bytes: number }>;
  /** Resolves with the error of the call; throws if the call succeeds. */
  refusal(tool: string, args: Record<string, unknown>): Promise<Failure>;
  /** Waits until no turn runs. Throws if a request opens meanwhile. */
  end(sessionId: string, cursor?: number): Promise<Answer>;
  /** Waits until a request is open or the turn ends. */
  news(sessionId: string, cursor?: number): Promise<Answer>;
  close(): Promise<void>;
}

/** A form as a person at the client sees it. */
export interface SeenForm {
  readonly message: string;
  readonly properties: Readonly<Record<string, { enum?: string[]; enumNames?: string[]; items?: { enum?: string[] } }>>;
}

interface Filled {
  action: "accept" | "decline" | "cancel";
  content?: Record<string, string | string[]>;
}

/** The person at a client that can show forms. `signal` aborts when the server withdraws its form. */
export type Person = (form: SeenForm, signal: AbortSignal) => Filled | Promise<Filled>;

const Elicited = z.looseObject({
  params: z.looseObject({
    message: z.string(),
    requestedSchema: z.looseObject({ properties: z.record(z.string(), z.looseObject({})) }),
  }),
});

export function newClient(kind: ClientKind, person?: Person): Client | V1Client {
  const info = { name: `test-${kind}`, version: "1.0.0" };
  const able = person && { capabilities: { elicitation: { form: {} } } };
  const ask = async (request: unknown, signal: AbortSignal): Promise<Filled> => {
    const { message, requestedSchema } = Elicited.parse(request).params;
    return person!({ message, properties: requestedSchema.properties }, signal);
  };
  if (kind === "v1") {
    const client = new V1Client(info, able);
    if (person)
      client.setRequestHandler(ElicitRequestSchema, async (form, { signal }) => ({ ...(await ask(form, signal)) }));
    return client;
  }
  const client = new Client(info, { ...able, ...negotiation(kind) });
  if (person)
    client.setRequestHandler("elicitation/create", async (form, { mcpReq }) => ({
      ...(await ask(form, mcpReq.signal)),
    }));
  return client;
}

function negotiation(kind: Exclude<ClientKind, "v1">): ConstructorParameters<typeof Client>[1] {
  if (kind === "legacy") return {};
  // Only the later era can be pinned (`pin`); in the older one the client offers its supported versions.
  if (kind === "2025-11-25") return { supportedProtocolVersions: [kind] };
  return { versionNegotiation: { mode: kind === "modern" ? "auto" : { pin: kind } } };
}

/** Tests check more fields than a calling model needs. */
const WHOLE = { responseMode: "delta_compact" };

/** Wraps a connected client. */
export function connectionOf(client: Client | V1Client): Connection {
  const gone = new Promise<void>((resolve) => {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a client is not an event target
    client.onclose = () => resolve();
  });

  const raw = async (tool: string, args: Record<string, unknown>, options: object = {}) => {
    const request = { name: tool, arguments: args };
    const settings = { timeout: 120_000, ...options };
    const answer =
      client instanceof V1Client
        ? await client.callTool(request, undefined, settings)
        : await client.callTool(request, settings);
    return Envelope.parse(answer);
  };
  const answered = async (tool: string, args: Record<string, unknown>, options?: object) => {
    const answer = await raw(tool, args, options);
    const text = answer.content[0]?.text ?? "";
    if (answer.isError) throw new Error(`${tool}: ${text}`);
    const data = JSON.stringify(answer.structuredContent);
    if (JSON.stringify(JSON.parse(text)) !== data) throw new Error(`text and structuredContent differ: ${text}`);
    const bytes = Math.max(Buffer.byteLength(text), Buffer.byteLength(data));
    return { answer: Answer.parse(answer.structuredContent), bytes };
  };
  const connection: Connection = {
    client,
    gone,
    call: async (tool, args, options) => (await answered(tool, args, options)).answer,
    measured: answered,
    async refusal(tool, args) {
      const answer = await raw(tool, args);
      const text = answer.content[0]?.text ?? "";
      if (!answer.isError) throw new Error(`${tool} was not refused: ${text.slice(0, 500)}`);
      const { code } = z
        .looseObject({ isError: z.literal(true), error: z.string(), code: z.string() })
        .parse(answer.structuredContent);
      return { code, text };
    },
    async news(sessionId, cursor) {
      return connection.call("claude_code_check", { action: "poll", sessionId, cursor, waitMs: 40_000, ...WHOLE });
    },
    async end(sessionId, cursor) {
      const answer = await connection.call("claude_code_check", {
        action: "poll",
        sessionId,
        cursor,
        waitMs: 40_000,
        until: "end",
        ...WHOLE,
      });
      if (answer.actions.length > 0) throw new Error(`asked: ${JSON.stringify(answer.actions)}`);
      return answer;
    },
    close: async () => client.close(),
  };
  return connection;
}
