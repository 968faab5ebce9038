import {
  createMcpHandler,
  isLegacyRequest,
  SUPPORTED_PROTOCOL_VERSIONS,
  type McpHttpHandler,
  type JSONRPCRequest,
  type McpRequestContext,
  type McpServer,
  type ServerNotifier,
} from "@modelcontextprotocol/server";
import type { Caller } from "../domain/principal.ts";
import type { Logger } from "../engine/ports.ts";
import { authInfoOf, type CallerAndBody } from "./caller.ts";
import { LegacyClients, type ClientLimits } from "./legacy-clients.ts";
import { readBody } from "./http-body.ts";
import type { SessionIds } from "./session-ids.ts";
import { asksToListen, grant, ListenBus } from "./watch/listen-request.ts";
import type { SubscriptionParts } from "./watch/subscriptions.ts";

/**
 * Serves both eras at one endpoint: since 2026-07-28 each request stands alone; clients of 2025 have a protocol session.
 * Requests have passed src/http: the caller is authenticated, and the body is JSON within the size limit.
 */

/** Creates a server for a client of the 2025 era, or for one request of a later client. Free of side effects. */
export type ServerFactory = (context: Pick<McpRequestContext, "era">) => McpServer;

export interface HttpEndpoint {
  /** Versions of both eras, newest first. */
  readonly protocolVersions: readonly string[];
  readonly fetch: (request: Request, entry: CallerAndBody) => Promise<Response>;
  /** Notifies listening clients of later eras. Clients of 2025 are notified by their own server. */
  readonly notify: ServerNotifier;
  /** Ends all streams, and aborts waiting calls. */
  close(): Promise<void>;
}

export interface HttpEndpointOptions {
  readonly factory: ServerFactory;
  readonly limits: ClientLimits;
  readonly ids: SessionIds;
  /** `undefined` if sessions cannot be followed. */
  readonly following: (() => Promise<SubscriptionParts>) | undefined;
  /** Ends the event streams, so that each gets its result. */
  readonly endStreams?: (() => Promise<void>) | undefined;
  readonly log: Pick<Logger, "debug" | "warn">;
}

export function createHttpEndpoint({
  endStreams,
  factory,
  following,
  ids,
  limits,
  log,
}: HttpEndpointOptions): HttpEndpoint {
  const onerror = (error: Error) => log.debug("a request of a client failed", { error: error.message });
  const modern = createMcpHandler(factory, { legacy: "reject", onerror });
  const streams = new Set<Pick<McpHttpHandler, "close">>();
  // Creates a bus for each stream, because the SDK's shared bus would report changes of one principal's sessions to all
  // listeners.
  const listen = async (request: Request, body: JSONRPCRequest, caller: Caller, follow: SubscriptionParts) => {
    const bus = new ListenBus(follow, modern.bus, () => streams.delete(handler));
    const handler = createMcpHandler(factory, { legacy: "reject", bus, onerror });
    streams.add(handler);
    const { request: parsedBody } = await grant(body, caller, bus.subscriptions);
    const response = await handler.fetch(request, { authInfo: authInfoOf(caller), parsedBody });
    bus.closeUnused();
    return response;
  };
  const clients = new LegacyClients(() => factory({ era: "legacy" }), { ids, limits, log });
  let isClosed = false;
  return {
    protocolVersions: ["2026-07-28", ...SUPPORTED_PROTOCOL_VERSIONS],
    fetch: async (request, given) => {
      // Requests can still arrive on open connections after `close`.
      if (isClosed) return shuttingDown();
      const read = readBody(given.body);
      if (read.refusal) return read.refusal;
      const entry = { ...given, body: read.body };
      if (await isLegacyRequest(request, entry.body)) return clients.handle(normalizeAccept(request), entry);
      const { body, caller } = entry;
      if (following && asksToListen(body)) return listen(request, body, caller, await following());
      const response = await modern.fetch(request, { authInfo: authInfoOf(entry.caller), parsedBody: entry.body });
      // Answers 503 only if this server is stopping. If the client has left, the response is not read.
      return response.status === CLIENT_LEFT && !request.signal.aborted ? shuttingDown() : response;
    },
    notify: modern.notify,
    close: async () => {
      isClosed = true;
      await endStreams?.();
      await Promise.all([modern.close(), ...[...streams].map(async (stream) => stream.close()), clients.close()]);
    },
  };
}

const CLIENT_LEFT = 499;

function shuttingDown(): Response {
  const error = { code: -32_603, message: "The server is shutting down. Send the request again in a moment." };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 503, headers: { "Retry-After": "1" } });
}

const ANSWER_TYPES = ["application/json", "text/event-stream"] as const;

/**
 * Returns the request with a normalized `Accept`. The SDK compares media types literally, but HTTP ignores case and allows
 * ranges and weights.
 */
function normalizeAccept(request: Request): Request {
  const { headers, method, signal, url } = request;
  // A missing header accepts everything.
  const given = headers.get("accept") ?? "*/*";
  const accept = ANSWER_TYPES.filter((type) => accepts(given, type)).join(", ");
  if (accept === given) return request;
  const plain = new Headers(headers);
  plain.set("accept", accept);
  // Omits the body, which was already read.
  return new Request(url, { method, headers: plain, signal });
}

/** Applies the most specific range; a weight of 0 refuses the type. */
function accepts(accept: string, type: string): boolean {
  const [group] = type.split("/");
  const weights = new Map(accept.toLowerCase().split(",").map(parseRange));
  return (weights.get(type) ?? weights.get(`${group ?? ""}/*`) ?? weights.get("*/*") ?? 0) > 0;
}

function parseRange(text: string): [string, number] {
  const [range = "", ...parameters] = text.split(";").map((part) => part.trim());
  const weight = parameters.find((parameter) => /^q\s*=/.test(parameter));
  return [range, weight === undefined ? 1 : Number(weight.slice(weight.indexOf("=") + 1))];
}
