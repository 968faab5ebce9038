import { once } from "node:events";
import type { Server } from "node:http";
import { serve, type HttpBindings } from "@hono/node-server";
import { cutSlowReaders } from "./limits.ts";

/** The port, and how long a client may take to say and to hear something. */

export interface ListenOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly fetch: (request: Request, bindings: HttpBindings) => Response | Promise<Response>;
  /** From a request's first byte to its last, ms; its headers have a quarter of it. */
  readonly receiveMs: number;
  /** A client that takes nothing of what waits for it for so long is cut off, ms. */
  readonly sendMs: number;
  readonly onSlowReader: () => void;
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
  const { host, port, fetch, receiveMs, sendMs, onSlowReader } = options;
  const headersMs = Math.ceil(receiveMs / 4);
  const server = serve({
    fetch: (request, bindings) => fetch(request, bindings as HttpBindings),
    hostname: unbracketed(host),
    port,
    serverOptions: {
      requestTimeout: receiveMs,
      headersTimeout: headersMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: Math.min(headersMs, 5_000),
    },
  }) as Server;
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
