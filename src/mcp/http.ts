import {
  createMcpHandler,
  isLegacyRequest,
  type McpRequestContext,
  type McpServer,
  type ServerNotifier,
} from "@modelcontextprotocol/server";
import type { Logger } from "../engine/ports.ts";
import { authInfoOf, type Entry } from "./caller.ts";
import { Clients, type ClientLimits } from "./clients.ts";

/**
 * One endpoint for both eras: from 2026-07-28 on each request stands alone; clients of 2025 have a protocol session.
 * Whoever comes here has passed the door: who he is, and that his body is JSON of a bearable size, is settled.
 */

/** Made for a client of 2025, or for a request of a later one. Side-effect free: what it serves lives elsewhere. */
export type ServerFactory = (context: Pick<McpRequestContext, "era">) => McpServer;

export interface HttpEndpoint {
  readonly fetch: (request: Request, entry: Entry) => Promise<Response>;
  /** Tells the clients of later eras that listen what has changed; those of 2025 are told by their own server. */
  readonly notify: ServerNotifier;
  /** Ends all streams, and aborts the calls that wait. */
  close(): Promise<void>;
}

export interface HttpEndpointOptions {
  readonly factory: ServerFactory;
  readonly limits: ClientLimits;
  readonly log: Pick<Logger, "debug" | "warn">;
}

export function createHttpEndpoint({ factory, limits, log }: HttpEndpointOptions): HttpEndpoint {
  const modern = createMcpHandler(factory, {
    legacy: "reject",
    onerror: (error) => log.debug("a request of a client", { error: error.message }),
  });
  const clients = new Clients(() => factory({ era: "legacy" }), limits, log);
  return {
    fetch: async (request, entry) => {
      if (await isLegacyRequest(request, entry.body)) return clients.handle(request, entry);
      const response = await modern.fetch(request, { authInfo: authInfoOf(entry.caller), parsedBody: entry.body });
      // Said to nobody where the client has left; where this server leaves, somebody hears it.
      return response.status === CLIENT_LEFT && !request.signal.aborted ? leaving() : response;
    },
    notify: modern.notify,
    close: async () => {
      await Promise.all([modern.close(), clients.close()]);
    },
  };
}

const CLIENT_LEFT = 499;

function leaving(): Response {
  const error = { code: -32_603, message: "The server is shutting down. Send the request again in a moment." };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 503, headers: { "Retry-After": "1" } });
}
