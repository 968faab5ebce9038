/**
 * `fetch` with its own connections, like a client in a separate process. Node's `fetch` shares connections among all clients of
 * a process and can queue a request behind another client's long poll.
 */
import { setMaxListeners } from "node:events";
import { Agent, request } from "node:http";
import { Readable } from "node:stream";

/** Idle time of a connection, ms. Less than the server's keep-alive timeout, so that no request meets a closing connection. */
const UNUSED_MS = 3_000;
const WITHOUT_BODY = new Set([204, 205, 304]);

/** Returns `fetch`, as far as clients need it. `vanish()` drops all connections permanently and aborts `gone`. */
export function ownConnections() {
  const agent = new Agent({ keepAlive: true, timeout: UNUSED_MS });
  const gone = new AbortController();
  // Lifts the limit on listeners: one listener per open request is no leak.
  setMaxListeners(0, gone.signal);
  const own = async (input, { body, headers, method = "GET", signal } = {}) => {
    const signals = [gone.signal, signal].filter(Boolean);
    const options = {
      agent,
      method,
      headers: Object.fromEntries(new Headers(headers)),
      signal: AbortSignal.any(signals),
    };
    const incoming = await new Promise((resolve, reject) => {
      request(input, options, resolve).on("error", reject).end(body);
    });
    const { headers: given, statusCode: status } = incoming;
    // Ignores the error of an answer broken off by a leaving client.
    incoming.on("error", () => undefined);
    if (!WITHOUT_BODY.has(status)) return new Response(Readable.toWeb(incoming), { status, headers: flat(given) });
    incoming.resume();
    return new Response(null, { status, headers: flat(given) });
  };
  const vanish = () => {
    gone.abort();
    agent.destroy();
  };
  return { fetch: own, gone: gone.signal, vanish };
}

function flat(headers) {
  return Object.entries(headers).map(([name, value]) => [name, [value].flat().join(", ")]);
}
