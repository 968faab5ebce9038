import type { JsonObject } from "../domain/json.ts";

/**
 * What the engine needs from the outside: a runtime for Claude Code (claude/), a store for sessions (store/),
 * a clock and a log. The engine owns these contracts; app/app.ts plugs the implementations in.
 */

export type * from "./ports/agent.ts";
export * from "./ports/store.ts";

export interface Clock {
  /** ms since the epoch, for people and for what other machines say. It can be set: nothing is measured with it. */
  now(): number;
  /** ms of time awake since some moment; only goes forward, whatever becomes of `now`. */
  tick(): number;
  /**
   * Calls back once, when `ms` of time awake have passed; the returned function calls it off. Never keeps the process alive. `isLimit`: what
   * ends then must not end for a freeze of this process, however short `ms` is.
   */
  after(ms: number, callback: () => void, options?: { readonly isLimit?: boolean }): () => void;
}

export interface Logger {
  debug(message: string, fields?: JsonObject): void;
  info(message: string, fields?: JsonObject): void;
  warn(message: string, fields?: JsonObject): void;
  error(message: string, fields?: JsonObject): void;
}
