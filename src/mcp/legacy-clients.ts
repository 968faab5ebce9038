import {
  WebStandardStreamableHTTPServerTransport,
  type HandleRequestOptions,
  type McpServer,
} from "@modelcontextprotocol/server";
import type { Principal } from "../domain/principal.ts";
import type { Logger } from "../engine/ports.ts";
import { authInfoOf, type CallerAndBody } from "./caller.ts";
import { isRequest, messagesIn, refuseDuplicateId } from "./http-body.ts";
import { ReplayBuffer } from "./replay-buffer.ts";
import type { Opening, SessionIds } from "./session-ids.ts";
import { type Id, isId, UnansweredRequests } from "./unanswered-requests.ts";

/**
 * Clients of the 2025 era. Each has a protocol session: a transport, a server, and a buffer of messages that can be replayed.
 * Sessions of Claude Code do not depend on protocol sessions. A protocol session that was forgotten, by a restart or to make
 * room, is restored from its id, without the client's later settings: log level, subscriptions, buffered messages.
 */

export interface ClientLimits {
  /** Idle time after which a session without an open request is forgotten until its client returns, ms. */
  readonly idleMs: number;
  /** Maximum number of sessions per principal. Beyond, the longest idle session is forgotten. */
  readonly most: number;
}

/** Time for a client with a broken connection to return before its calls count as given up, ms. */
const RECONNECT_MS = 5_000;
/** Maximum bytes of messages kept for returning clients. */
const REPLAY_BYTES = 16_777_216;
/** Reconnection delay of clients after a broken stream, ms. */
const RETRY_MS = 1_000;

interface LegacyClient {
  readonly id: string;
  readonly principal: Principal;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: McpServer;
  readonly unanswered: UnansweredRequests;
  /** Number of responses in progress. */
  open: number;
  /** `performance.now()` of the last use, ms. */
  usedAt: number;
  /** True if the connection of a call was closed before its result. */
  hasLeft: boolean;
  /** Timer that forgets a client with `hasLeft`, while no response is open. */
  giveUp: NodeJS.Timeout | undefined;
  /** `performance.now()` of the last request for the rest of a broken stream, ms. */
  resumedAt: number;
}

interface ClientsOptions {
  readonly limits: ClientLimits;
  readonly ids: Pick<SessionIds, "issue" | "read">;
  readonly log: Pick<Logger, "debug" | "warn">;
}

/** Maximum number of remembered ids of sessions that their clients have ended. */
const MAX_ENDED = 10_000;

export class LegacyClients {
  readonly #make: (entry: CallerAndBody) => McpServer;
  readonly #options: ClientsOptions;
  readonly #clients = new Map<string, LegacyClient>();
  /** Sessions being restored, by principal and id, so that concurrent requests share one session. */
  readonly #restoring = new Map<string, Promise<LegacyClient | undefined>>();
  readonly #ended = new Set<string>();
  readonly #replay = new ReplayBuffer(REPLAY_BYTES);
  readonly #sweep: NodeJS.Timeout;
  #isClosed = false;

  constructor(make: (entry: CallerAndBody) => McpServer, options: ClientsOptions) {
    this.#make = make;
    this.#options = options;
    this.#sweep = setInterval(() => this.#forgetIdle(), Math.min(options.limits.idleMs, 60_000)).unref();
  }

  async handle(request: Request, entry: CallerAndBody): Promise<Response> {
    const client = await this.#findOrRestore(request, entry);
    // Answers as for an unknown session, because another principal's id must not be revealed.
    if (!client || client.principal !== entry.caller.principal) return sessionNotFound();
    const { unanswered } = client;
    const messages = messagesIn(entry.body);
    // Refuses a duplicate id, because the SDK would send the answer to the other request.
    const taken = messages.find((message) => isRequest(message) && unanswered.has(message["id"]));
    if (taken) return refuseDuplicateId(taken["id"]);
    for (const message of messages) unanswered.noteReceived(message);
    const options: HandleRequestOptions = { authInfo: authInfoOf(entry.caller), parsedBody: entry.body };
    const response = await client.transport.handleRequest(this.#dropForeignEventId(request), options);
    // The response to a body that was refused as a whole answers all its requests.
    if (!response.ok) for (const message of messages) if (isRequest(message)) unanswered.forget(message["id"]);
    // Any other message than `initialize` has created no session.
    if (client.transport.sessionId === undefined) await client.server.close();
    const streams = messages.filter(({ method }) => method === "events/stream").map(({ id }) => id);
    return this.#trackResponse(client, request, { response, streams: streams.filter((id) => isId(id)) });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    await Promise.all([...this.#clients.values()].map(async (client) => this.#forget(client)));
  }

  async #findOrRestore(request: Request, entry: CallerAndBody): Promise<LegacyClient | undefined> {
    const { principal } = entry.caller;
    const id = request.headers.get("mcp-session-id");
    if (id === null) return this.#begin(entry, await this.#options.ids.issue(principal, entry.body));
    const known = this.#clients.get(id);
    if (known) return known;
    const key = `${principal}\n${id}`;
    const takingUp = this.#restoring.get(key) ?? this.#restore(id, request, entry);
    this.#restoring.set(key, takingUp);
    return takingUp.finally(() => this.#restoring.delete(key));
  }

  /** Restores a forgotten session from the facts in its id. Resolves to `undefined` for an invalid id. */
  async #restore(id: string, request: Request, entry: CallerAndBody): Promise<LegacyClient | undefined> {
    const { caller } = entry;
    const opening = this.#ended.has(id) ? undefined : await this.#options.ids.read(caller.principal, id);
    if (!opening || this.#isClosed) return undefined;
    const client = await this.#begin(entry, id);
    // Prefers the negotiated version of the header, which can differ from the requested version in the id.
    const protocolVersion = request.headers.get("mcp-protocol-version") ?? opening.protocolVersion;
    const options = { authInfo: authInfoOf(caller), parsedBody: initializeMessage({ ...opening, protocolVersion }) };
    const answer = await client.transport.handleRequest(new Request(request.url, INITIALIZE), options);
    await answer.text();
    // Removes the response from the replay buffer, because the client has not asked for it.
    this.#replay.forget(id);
    return client;
  }

  async #begin(entry: CallerAndBody, id: string): Promise<LegacyClient> {
    const { principal } = entry.caller;
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessioninitialized: () => this.#remember(client),
      onsessionclosed: async () => this.#end(client),
      eventStore: this.#replay.storeFor(id),
      retryInterval: RETRY_MS,
    });
    const server = this.#make(entry);
    const unanswered = new UnansweredRequests();
    const send = transport.send.bind(transport);
    transport.send = async (message, options) => {
      unanswered.noteSent({ ...message });
      return send(message, options);
    };
    const client: LegacyClient = {
      id,
      principal,
      transport,
      server,
      unanswered,
      open: 0,
      usedAt: performance.now(),
      hasLeft: false,
      giveUp: undefined,
      resumedAt: 0,
    };
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is not an event target
    transport.onerror = (error) => this.#options.log.debug("a request of a client failed", { error: error.message });
    await server.connect(transport);
    return client;
  }

  #remember(client: LegacyClient): void {
    const idle = [...this.#clients.values()]
      .filter(({ open, principal }) => principal === client.principal && open === 0)
      .toSorted((one, other) => one.usedAt - other.usedAt);
    const own = [...this.#clients.values()].filter(({ principal }) => principal === client.principal);
    for (const oldest of idle.slice(0, own.length + 1 - this.#options.limits.most)) void this.#forget(oldest);
    this.#clients.set(client.id, client);
  }

  async #end(client: LegacyClient): Promise<void> {
    this.#ended.add(client.id);
    const [oldest] = this.#ended;
    if (oldest !== undefined && this.#ended.size > MAX_ENDED) this.#ended.delete(oldest);
    await this.#forget(client);
  }

  async #forget(client: LegacyClient): Promise<void> {
    clearTimeout(client.giveUp);
    this.#clients.delete(client.id);
    this.#replay.forget(client.id);
    await client.server
      .close()
      .catch((error: unknown) =>
        this.#options.log.warn("a client session could not be closed", { error: String(error) }),
      );
  }

  #forgetIdle(): void {
    const before = performance.now() - this.#options.limits.idleMs;
    for (const client of this.#clients.values()) {
      if (client.open === 0 && client.usedAt < before) void this.#forget(client);
    }
  }

  /** Removes a `Last-Event-ID` of an earlier server from the request, so that the client still gets a stream. */
  #dropForeignEventId(request: Request): Request {
    const last = request.headers.get("last-event-id");
    if (request.method !== "GET" || last === null || this.#replay.hasAssigned(last)) return request;
    const headers = new Headers(request.headers);
    headers.delete("last-event-id");
    return new Request(request.url, { headers, signal: request.signal });
  }

  /** Returns the response with a body that reports whether the client has read to the end. */
  #trackResponse(
    client: LegacyClient,
    request: Request,
    { response, streams }: { readonly response: Response; readonly streams: readonly Id[] },
  ): Response {
    client.usedAt = performance.now();
    const { body } = response;
    if (body === null || !isStream(response)) return response;
    client.open += 1;
    clearTimeout(client.giveUp);
    // A client that asks for the rest of a call has not given up the call.
    if (request.headers.has("last-event-id")) {
      client.hasLeft = false;
      client.resumedAt = client.usedAt;
    }
    const ended = (early: boolean): void => {
      client.open -= 1;
      client.usedAt = performance.now();
      client.hasLeft ||= early && request.method === "POST";
      if (early && streams.length > 0) this.#cancelLater(client, streams);
      // Without a reader, no client waits for the results of its calls.
      if (client.hasLeft && client.open === 0) this.#giveUpLater(client);
    };
    return new Response(withEndCallback(body, ended), response);
  }

  /** Ends event streams whose client does not come back, even if the client goes on with other requests. */
  #cancelLater(client: LegacyClient, streams: readonly Id[]): void {
    const leftAt = performance.now();
    const cancel = (requestId: Id) => {
      client.unanswered.forget(requestId);
      client.transport.onmessage?.({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
    };
    setTimeout(() => client.resumedAt < leftAt && streams.forEach(cancel), RECONNECT_MS).unref();
  }

  #giveUpLater(client: LegacyClient): void {
    client.giveUp = setTimeout(() => {
      this.#options.log.debug("a client left its call and did not come back", { principal: client.principal });
      void this.#forget(client);
    }, RECONNECT_MS).unref();
  }
}

/** Calls `onEnd` once; `early` is true if the reader left before the end. */
function withEndCallback(
  body: ReadableStream<Uint8Array>,
  onEnd: (early: boolean) => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let isOver = false;
  const end = (early: boolean): void => {
    if (!isOver) onEnd(early);
    isOver = true;
  };
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        end(true);
        throw error;
      });
      if (!done) return controller.enqueue(value);
      // After `cancel` the stream is already closed.
      if (!isOver) controller.close();
      end(false);
    },
    async cancel(reason) {
      end(true);
      await reader.cancel(reason);
    },
  });
}

function isStream({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/event-stream") === true;
}

const INITIALIZE: RequestInit = {
  method: "POST",
  headers: { accept: "application/json, text/event-stream", "content-type": "application/json" },
};

function initializeMessage(params: Opening): object {
  return { jsonrpc: "2.0", id: 0, method: "initialize", params };
}

/** 404 makes clients that follow the protocol send `initialize` again. */
function sessionNotFound(): Response {
  const message = "Session not found: it has ended, or no server of this store has begun it. Send initialize again.";
  return Response.json({ jsonrpc: "2.0", id: null, error: { code: -32_001, message } }, { status: 404 });
}
