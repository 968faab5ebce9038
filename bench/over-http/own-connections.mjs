/**
 * A fetch with connections of its own, as a client in a process of its own has them. Node's fetch shares its connections among
 * all clients of a process, and lets a request wait behind another's that is held for as long as a call may wait.
 */
import { setMaxListeners } from "node:events";
import { Agent, request } from "node:http";
import { Readable } from "node:stream";

/** Less than a server keeps an unused connection: a request must not meet its end. */
const UNUSED_MS = 3_000;
const WITHOUT_BODY = new Set([204, 205, 304]);

/** `fetch` as far as clients use it; `vanish()` breaks off all connections at once, and for good, which `gone` tells. */
export function ownConnections() {
  const agent = new Agent({ keepAlive: true, timeout: UNUSED_MS });
  const gone = new AbortController();
  // One for each request that is open, which is no leak.
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
    // Whoever leaves while an answer comes breaks it off: that is no fault of anybody.
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
