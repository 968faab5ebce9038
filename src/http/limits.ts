import type { Server } from "node:http";
import type { Socket } from "node:net";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { refuse } from "./guards.ts";

/** How much one principal may ask for at a time, and how long one client may take. */

const MINUTE_S = 60;

/** So many requests in a minute for each key; several may be counted at once. Resolves with the refusal of one too many. */
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

/** How many requests of each key are open. */
export class OpenRequests {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Undefined where it may be opened; whoever opens it says when it has `ended`. */
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

/** Cuts off who has taken nothing for `ms` of what waits for him. The returned function stops looking. */
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
