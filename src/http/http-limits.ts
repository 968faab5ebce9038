import type { Server } from "node:http";
import type { Socket } from "node:net";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { refuse } from "./request-guards.ts";
import type { Logger } from "../engine/ports.ts";

/** Limits of requests and connections, per principal, address and client. */

const MINUTE_S = 60;

/** Rate limit per key and minute. Resolves with the refusal once the limit is exceeded. */
export function rateLimit(perMinute: number): (key: string, requests?: number) => Promise<Response | undefined> {
  const limiter = new RateLimiterMemory({ points: perMinute, duration: MINUTE_S });
  return async (key, requests = 1) => {
    try {
      if (requests > 0) await limiter.consume(key, requests);
      return undefined;
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      const seconds = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
      const problem = `More than ${String(perMinute)} requests in a minute.`;
      const message = `${problem} Wait ${String(seconds)} s; one claude_code_check with waitMs replaces many polls.`;
      return refuse(429, "too_many_requests", message, { "Retry-After": String(seconds) });
    }
  };
}

/** Concurrency limit: open requests per key. */
export class OpenRequests {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Returns `undefined` if another request may be opened; then call `began`. */
  refusal(key: string): Response | undefined {
    if ((this.#open.get(key) ?? 0) < this.#most) return undefined;
    const message = `${String(this.#most)} requests are open already. Wait for one to end; one claude_code_check can poll several sessions.`;
    return refuse(429, "too_many_open_requests", message, { "Retry-After": "1" });
  }

  began(key: string): () => void {
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    return () => {
      const left = (this.#open.get(key) ?? 1) - 1;
      if (left > 0) this.#open.set(key, left);
      else this.#open.delete(key);
    };
  }
}

/** Destroys connections that have read nothing of their pending output for `ms`. The returned function stops the check. */
export function cutSlowReaders(server: Server, ms: number, onCut: () => void): () => void {
  const stuck = new Map<Socket, { written: number; since: number }>();
  server.on("connection", (socket: Socket) => {
    stuck.set(socket, { written: 0, since: performance.now() });
    socket.once("close", () => stuck.delete(socket));
  });
  const look = (): void => {
    for (const [socket, seen] of stuck) {
      const written = socket.bytesWritten - socket.writableLength;
      if (socket.writableLength === 0 || written > seen.written)
        stuck.set(socket, { written, since: performance.now() });
      else if (performance.now() - seen.since >= ms) {
        onCut();
        socket.destroy();
      }
    }
  };
  const timer = setInterval(look, Math.max(ms / 4, 25)).unref();
  return () => clearInterval(timer);
}

/**
 * Limits the number of connections. Each takes a file descriptor before its client is known, and without descriptors no session
 * can start its Claude Code. Therefore connections without authentication are closed: the oldest first to make room, because
 * clients with a token send the token at once; and all after a time limit.
 */

interface ConnectionLimits {
  /** Maximum number of all connections. */
  readonly most: number;
  /** Time limit of a connection without an authenticated request, ms. */
  readonly anonymousMs: number;
}

/** Maximum share of all connections without an authenticated request. */
const ANONYMOUS_SHARE = 0.5;
/** Maximum share, and maximum number, of such connections from one address. */
const ADDRESS_SHARE = 0.25;
const MAX_PER_ADDRESS = 64;
/** Minimum time between log lines about closed connections, ms. */
const LOG_INTERVAL_MS = 60_000;

export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #log: Pick<Logger, "warn">;
  readonly #all = new Set<Socket>();
  /** Timers that end connections without authentication, oldest first. */
  readonly #anonymous = new Map<Socket, NodeJS.Timeout>();
  readonly #byAddress = new Map<string, Set<Socket>>();
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(limits: ConnectionLimits, log: Pick<Logger, "warn">) {
    this.#limits = limits;
    this.#log = log;
  }

  guard(server: Server): void {
    server.on("connection", (socket: Socket) => this.#admit(socket));
  }

  /** Exempts `socket` from the limits, because a request on the connection was authenticated. */
  markAuthenticated(socket: Socket): void {
    clearTimeout(this.#anonymous.get(socket));
    this.#anonymous.delete(socket);
    this.#leaveAddress(socket);
  }

  #admit(socket: Socket): void {
    const { most, anonymousMs } = this.#limits;
    const address = socket.remoteAddress ?? "";
    const ofAddress = this.#byAddress.get(address) ?? new Set();
    if (ofAddress.size >= Math.max(1, Math.min(MAX_PER_ADDRESS, Math.floor(most * ADDRESS_SHARE)))) {
      this.#cut(first(ofAddress), `more than ${String(ofAddress.size)} without a token from one address`);
    } else if (this.#anonymous.size >= Math.max(1, most * ANONYMOUS_SHARE) || this.#all.size >= most) {
      const oldest = first(this.#anonymous.keys());
      const isFull = this.#all.size >= most;
      this.#cut(
        oldest ?? socket,
        `${isFull ? "all" : "half"} of ${String(most)} are taken${isFull ? "" : " without a token"}`,
      );
      if (!oldest) return;
    }
    this.#all.add(socket);
    const timer = setTimeout(() => this.#timeOut(socket), anonymousMs).unref();
    this.#anonymous.set(socket, timer);
    this.#byAddress.set(address, ofAddress.add(socket));
    // A closed socket has no `remoteAddress`.
    socket.once("close", () => this.#forget(socket, address));
  }

  /** Extends the time limit while a response is being sent; `cutSlowReaders` limits slow readers. */
  #timeOut(socket: Socket): void {
    if (socket.writableLength > 0) this.#anonymous.get(socket)?.refresh();
    else socket.destroy();
  }

  #cut(socket: Socket | undefined, why: string): void {
    if (socket) this.markAuthenticated(socket);
    socket?.destroy();
    if (performance.now() < this.#loggedAt + LOG_INTERVAL_MS) return;
    this.#loggedAt = performance.now();
    this.#log.warn("connections are cut off: there are too many", { why });
  }

  #forget(socket: Socket, address: string): void {
    this.#all.delete(socket);
    this.markAuthenticated(socket);
    this.#byAddress.get(address)?.delete(socket);
    if (this.#byAddress.get(address)?.size === 0) this.#byAddress.delete(address);
  }

  #leaveAddress(socket: Socket): void {
    this.#byAddress.get(socket.remoteAddress ?? "")?.delete(socket);
  }
}

function first<T>(all: Iterable<T>): T | undefined {
  for (const one of all) return one;
  return undefined;
}
