import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { getRequestListener, type Http2Bindings, type HttpBindings } from "@hono/node-server";
import { type Connections, cutSlowReaders } from "./limits.ts";
/** The port, and how long a client may take to say and to hear something. */

/** The two ends of a request as Node has them. */
export type Bindings = HttpBindings | Http2Bindings;

export interface ListenOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly fetch: (request: Request, bindings: Bindings) => Response | Promise<Response>;
  /** From a request's first byte to its last, ms; its headers have a quarter of it. */
  readonly receiveMs: number;
  /** A client that reads nothing of its pending output for this long is disconnected, ms. */
  readonly sendMs: number;
  readonly onSlowReader: () => void;
  readonly connections: Pick<Connections, "guard">;
}

export interface Listening {
  /** Where it listens, without a path. */
  readonly url: string;
  /** Takes no further connections, waits `graceMs` for the open ones to end, and ends those that do not. */
  close(graceMs: number): Promise<void>;
}

/** Between the answer to a request and the next one on the same connection, ms. */
const KEEP_ALIVE_MS = 5_000;

/** Rejects with the error of the system where it cannot listen. */
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
