import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { getRequestListener, type Http2Bindings, type HttpBindings } from "@hono/node-server";
import { type Connections, cutSlowReaders } from "./http-limits.ts";
/** Listens on the port, with time limits for receiving requests and sending responses. */

/** Request and response objects of Node. */
export type Bindings = HttpBindings | Http2Bindings;

export interface ListenOptions {
  readonly host: string;
  /** `0` chooses a free port. */
  readonly port: number;
  readonly fetch: (request: Request, bindings: Bindings) => Response | Promise<Response>;
  /** Time limit for receiving a request, ms; a quarter applies to its headers. */
  readonly receiveMs: number;
  /** A client that reads none of its pending output for this long is disconnected, ms. */
  readonly sendMs: number;
  readonly onSlowReader: () => void;
  readonly connections: Pick<Connections, "guard">;
}

export interface Listening {
  /** Base URL, without a path. */
  readonly url: string;
  /** Accepts no further connections, waits `graceMs` for open requests, then closes the remaining connections. */
  close(graceMs: number): Promise<void>;
}

/** Maximum idle time between two requests on a connection, ms. */
const KEEP_ALIVE_MS = 5_000;

/** Rejects with the system's error if listening fails. */
export async function listen(options: ListenOptions): Promise<Listening> {
  const { connections, host, port, fetch, receiveMs, sendMs, onSlowReader } = options;
  const headersMs = Math.ceil(receiveMs / 4);
  const answer = getRequestListener(fetch);
  const server = createServer(
    {
      requestTimeout: receiveMs,
      headersTimeout: headersMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: Math.min(headersMs, 5_000),
    },
    (incoming, outgoing) => void answer(incoming, outgoing),
  );
  connections.guard(server);
  server.listen({ host: unbracketed(host), port });
  await once(server, "listening");
  const stopLooking = cutSlowReaders(server, sendMs, onSlowReader);
  return {
    url: urlOf(server, host),
    close: async (graceMs) => {
      const closed = once(server, "close");
      server.close();
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(timer);
      stopLooking();
    },
  };
}

function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `http://${host}:${String(port)}`;
}

function unbracketed(host: string): string {
  return host.replace(/^\[(.*)\]$/, "$1");
}
