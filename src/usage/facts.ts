import type { TurnEnded } from "../domain/event.ts";
import type { AnsweredBy } from "../domain/permission.ts";
import type { ResultUsage } from "../domain/usage.ts";

/**
 * Facts that count, as read from a log. `at` is the time of the event, or of the end of a period. Times are in ms, costs in
 * USD.
 */

export interface TurnFact {
  readonly at: number;
  readonly ended: TurnEnded;
  /** Tool that sent the prompt. */
  readonly tool: string;
  /** Part of the turn with an open request, ms. */
  readonly waitedMs: number;
  /** Shares of the cost by model, USD. */
  readonly costByModel: ReadonlyMap<string, number>;
}

export interface AnswerFact {
  readonly at: number;
  readonly kind: "permission" | "question";
  readonly decision: "allow" | "deny";
  readonly by: AnsweredBy;
  /** `undefined` if the log lacks the time of the request. */
  readonly waitMs: number | undefined;
}

/** Receives the facts of a session in order. */
export interface FactSink {
  turn(fact: TurnFact): void;
  answer(fact: AnswerFact): void;
  result(fact: { readonly at: number; readonly usage: ResultUsage }): void;
  /** Called for each period with one or more open requests. */
  waited(fact: { readonly at: number; readonly ms: number }): void;
  apiRetry(at: number): void;
  /** Called when a Claude Code process ends unexpectedly. */
  crash(at: number): void;
}

/** False for `interrupted` and `cancelled` turns, because they were ended on purpose. */
export function isFailure({ outcome }: TurnEnded): boolean {
  return outcome === "failed" || outcome === "lost";
}
