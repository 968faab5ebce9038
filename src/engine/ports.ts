import type { JsonObject } from "../domain/json.ts";

/**
 * Contracts of the engine with the outside: a runtime for Claude Code (claude/), a store for sessions (store/), a clock and a
 * log. The engine owns them; app/app.ts plugs the implementations in.
 */

export type * from "./ports/agent-signal.ts";
export type * from "./ports/agent.ts";
export type * from "./ports/conversations.ts";
export type * from "./ports/environments.ts";
export type * from "./ports/evidence.ts";
export type * from "./ports/feed.ts";
export type * from "./ports/lease.ts";
export type * from "./ports/ledger.ts";
export type * from "./ports/machines.ts";
export type * from "./ports/outbox.ts";
export * from "./ports/store.ts";

export interface Clock {
  /** ms since the epoch, for people and for times from other machines. Can be set, so nothing is measured with it. */
  now(): number;
  /** ms of time awake since some moment; only goes forward, whatever becomes of `now`. */
  tick(): number;
  /** ms since some moment, sleep of the machine and freezes of this process included. Cannot be set. */
  elapsed(): number;
  /**
   * Calls back once, after `ms` of time awake; the returned function cancels. Never keeps the process alive. `isLimit`: a
   * freeze of this process must not use up the limit, however short `ms` is.
   */
  after(ms: number, callback: () => void, options?: { readonly isLimit?: boolean }): () => void;
}

export interface Logger {
  debug(message: string, fields?: JsonObject): void;
  info(message: string, fields?: JsonObject): void;
  warn(message: string, fields?: JsonObject): void;
  error(message: string, fields?: JsonObject): void;
}
