import {
  WebStandardStreamableHTTPServerTransport,
  type HandleRequestOptions,
  type McpServer,
} from "@modelcontextprotocol/server";
import type { Principal } from "../domain/principal.ts";
import type { Logger } from "../engine/ports.ts";
import { authInfoOf, type Entry } from "./caller.ts";
import { isRequest, refuseTaken } from "./http-body.ts";
import type { Fields } from "./message.ts";
import { Replay } from "./replay.ts";
import type { Opening, SessionIds } from "./session-ids.ts";
import { Unanswered } from "./unanswered.ts";

/**
 * Clients of the 2025 era, each with a protocol session of its own: a transport, a server, and the messages it may ask
 * for again. Sessions of Claude Code do not hang on them. A session that is gone, with its server or to make room, is taken up
 * again by its id, but for what its client has asked for since: a log level, resources to follow, messages to be sent again.
 */

export interface ClientLimits {
  /** A session without an open request for this time is forgotten, ms, until its client comes back. */
  readonly idleMs: number;
  /** Sessions that one principal may have; beyond it the one that has been idle longest is forgotten. */
  readonly most: number;
}

/** A client whose connection broke has so long to come back before its calls are taken for given up, ms. */
const BREAK_MS = 5_000;
/** Bytes of messages kept for clients that come back. */
const REPLAY_BYTES = 16_777_216;
/** Between a broken stream and the next try of its client, ms. */
const RETRY_MS = 1_000;

interface Client {
  readonly id: string;
  readonly principal: Principal;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: McpServer;
  readonly unanswered: Unanswered;
  /** Answers that are being sent, or waited for. */
  open: number;
  /** ms, as performance.now() has it. */
  usedAt: number;
  /** The connection of a call was closed before its answer. */
  hasLeft: boolean;
  /** Runs while no client is connected to such a call. */
  giveUp: NodeJS.Timeout | undefined;
}

interface ClientsOptions {
  readonly limits: ClientLimits;
  readonly ids: Pick<SessionIds, "issue" | "read">;
  readonly log: Pick<Logger, "debug" | "warn">;
}

/** Ids of sessions that their clients have ended; the oldest are forgotten. */
const MOST_ENDED = 10_000;

export class Clients {
  readonly #make: (entry: Entry) => McpServer;
  readonly #options: ClientsOptions;
  readonly #clients = new Map<string, Client>();
  /** By principal and id: requests that come together find one session. */
  readonly #takingUp = new Map<string, Promise<Client | undefined>>();
  readonly #ended = new Set<string>();
  readonly #replay = new Replay(REPLAY_BYTES);
  readonly #sweep: NodeJS.Timeout;
  #isClosed = false;

  constructor(make: (entry: Entry) => McpServer, options: ClientsOptions) {
    this.#make = make;
    this.#options = options;
    this.#sweep = setInterval(() => this.#forgetIdle(), Math.min(options.limits.idleMs, 60_000)).unref();
  }

  async handle(request: Request, entry: Entry): Promise<Response> {
    const client = await this.#clientOf(request, entry);
    // A session of another principal does not exist here: its id must not reveal that there is one.
    if (!client || client.principal !== entry.caller.principal) return sessionNotFound();
    const { unanswered } = client;
    const messages = messagesIn(entry.body);
    // The SDK would send the answer to the other one.
    const taken = messages.find((message) => isRequest(message) && unanswered.has(message["id"]));
    if (taken) return refuseTaken(taken["id"]);
    for (const message of messages) unanswered.heard(message);
    const options: HandleRequestOptions = { authInfo: authInfoOf(entry.caller), parsedBody: entry.body };
    const response = await client.transport.handleRequest(this.#fromHere(request), options);
    // A body that was refused as a whole has its answer.
    if (!response.ok) for (const message of messages) if (isRequest(message)) unanswered.forget(message["id"]);
    // What was no initialize has made no session.
    if (client.transport.sessionId === undefined) await client.server.close();
    return this.#followed(client, request, response);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    await Promise.all([...this.#clients.values()].map(async (client) => this.#forget(client)));
  }

  async #clientOf(request: Request, entry: Entry): Promise<Client | undefined> {
    const { principal } = entry.caller;
    const id = request.headers.get("mcp-session-id");
    if (id === null) return this.#begin(entry, await this.#options.ids.issue(principal, entry.body));
    const known = this.#clients.get(id);
    if (known) return known;
    const key = `${principal}\n${id}`;
    const takingUp = this.#takingUp.get(key) ?? this.#takeUp(id, request, entry);
    this.#takingUp.set(key, takingUp);
    return takingUp.finally(() => this.#takingUp.delete(key));
  }

  /** A session that is not here any more, where its id says that it was. */
  async #takeUp(id: string, request: Request, entry: Entry): Promise<Client | undefined> {
    const { caller } = entry;
    const opening = this.#ended.has(id) ? undefined : await this.#options.ids.read(caller.principal, id);
    if (!opening || this.#isClosed) return undefined;
    const client = await this.#begin(entry, id);
    // A client names what the two have agreed on, which may be another version than it had asked for.
    const protocolVersion = request.headers.get("mcp-protocol-version") ?? opening.protocolVersion;
    const options = { authInfo: authInfoOf(caller), parsedBody: initializeWith({ ...opening, protocolVersion }) };
    const answer = await client.transport.handleRequest(new Request(request.url, INITIALIZE), options);
    await answer.text();
    // The client knows nothing of this answer.
    this.#replay.forget(id);
    return client;
  }

  async #begin(entry: Entry, id: string): Promise<Client> {
    const { principal } = entry.caller;
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessioninitialized: () => this.#remember(client),
      onsessionclosed: async () => this.#end(client),
      eventStore: this.#replay.of(id),
      retryInterval: RETRY_MS,
    });
    const server = this.#make(entry);
    const unanswered = new Unanswered();
    const send = transport.send.bind(transport);
    transport.send = async (message, options) => {
      unanswered.said({ ...message });
      return send(message, options);
    };
    const client: Client = {
      id,
      principal,
      transport,
      server,
      unanswered,
      open: 0,
      usedAt: performance.now(),
      hasLeft: false,
      giveUp: undefined,
    };
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is no event target
    transport.onerror = (error) => this.#options.log.debug("a request of a client", { error: error.message });
    await server.connect(transport);
    return client;
  }

  #remember(client: Client): void {
    const idle = [...this.#clients.values()]
      .filter(({ open, principal }) => principal === client.principal && open === 0)
      .toSorted((one, other) => one.usedAt - other.usedAt);
    const own = [...this.#clients.values()].filter(({ principal }) => principal === client.principal);
    for (const oldest of idle.slice(0, own.length + 1 - this.#options.limits.most)) void this.#forget(oldest);
    this.#clients.set(client.id, client);
  }

  async #end(client: Client): Promise<void> {
    this.#ended.add(client.id);
    const [oldest] = this.#ended;
    if (oldest !== undefined && this.#ended.size > MOST_ENDED) this.#ended.delete(oldest);
    await this.#forget(client);
  }

  async #forget(client: Client): Promise<void> {
    clearTimeout(client.giveUp);
    this.#clients.delete(client.id);
    this.#replay.forget(client.id);
    await client.server
      .close()
      .catch((error: unknown) => this.#options.log.warn("closing a client", { error: String(error) }));
  }

  #forgetIdle(): void {
    const before = performance.now() - this.#options.limits.idleMs;
    for (const client of this.#clients.values()) {
      if (client.open === 0 && client.usedAt < before) void this.#forget(client);
    }
  }

  /** The request without the id of a message that a server before has sent: its client gets a stream all the same. */
  #fromHere(request: Request): Request {
    const last = request.headers.get("last-event-id");
    if (request.method !== "GET" || last === null || this.#replay.hasNamed(last)) return request;
    const headers = new Headers(request.headers);
    headers.delete("last-event-id");
    return new Request(request.url, { headers, signal: request.signal });
  }

  /** The same answer, with an eye on whether its client stays to its end. */
  #followed(client: Client, request: Request, response: Response): Response {
    client.usedAt = performance.now();
    const { body } = response;
    if (body === null || !isStream(response)) return response;
    client.open += 1;
    clearTimeout(client.giveUp);
    // A client that asks for the rest of a call has not given it up.
    if (request.headers.has("last-event-id")) client.hasLeft = false;
    const ended = (early: boolean): void => {
      client.open -= 1;
      client.usedAt = performance.now();
      client.hasLeft ||= early && request.method === "POST";
      // Without a reader, no client waits for the results of its calls.
      if (client.hasLeft && client.open === 0) this.#giveUpLater(client);
    };
    return new Response(watched(body, ended), response);
  }

  #giveUpLater(client: Client): void {
    client.giveUp = setTimeout(() => {
      this.#options.log.debug("a client left its call and did not come back", { principal: client.principal });
      void this.#forget(client);
    }, BREAK_MS).unref();
  }
}

/** `onEnd` learns once whether the reader left before the end. */
function watched(body: ReadableStream<Uint8Array>, onEnd: (early: boolean) => void): ReadableStream<Uint8Array> {
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
      // A reader that has left has closed it.
      if (!isOver) controller.close();
      end(false);
    },
    async cancel(reason) {
      end(true);
      await reader.cancel(reason);
    },
  });
}

/** Messages of a body, which the checks of the endpoint have passed. */
function messagesIn(body: unknown): Fields[] {
  return [body].flat().filter((message): message is Fields => typeof message === "object" && message !== null);
}

function isStream({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/event-stream") === true;
}

const INITIALIZE: RequestInit = {
  method: "POST",
  headers: { accept: "application/json, text/event-stream", "content-type": "application/json" },
};

function initializeWith(params: Opening): object {
  return { jsonrpc: "2.0", id: 0, method: "initialize", params };
}

/** Clients answer 404 by beginning another session, as far as they follow the protocol. */
function sessionNotFound(): Response {
  const message = "Session not found: it has ended, or no server of this store has begun it. Send initialize again.";
  return Response.json({ jsonrpc: "2.0", id: null, error: { code: -32_001, message } }, { status: 404 });
}
