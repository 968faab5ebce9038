import type { JsonObject } from "../domain/json.ts";

/**
 * What the engine needs from the outside: somebody to run Claude Code (claude/), somewhere to keep sessions (store/),
 * a clock and a log. The engine owns these contracts; app.ts plugs the implementations in.
 */

export type * from "./ports/agent.ts";
export * from "./ports/store.ts";

export interface Clock {
  /** ms since the epoch. */
  now(): number;
  /** Calls back once, no earlier than `at`; the returned function calls it off. Never keeps the process alive. */
  at(time: number, callback: () => void): () => void;
}

export interface Logger {
  debug(message: string, fields?: JsonObject): void;
  info(message: string, fields?: JsonObject): void;
  warn(message: string, fields?: JsonObject): void;
  error(message: string, fields?: JsonObject): void;
}
