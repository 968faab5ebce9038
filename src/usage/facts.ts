import type { TurnEnded } from "../domain/event.ts";
import type { AnsweredBy } from "../domain/permission.ts";
import type { ResultUsage } from "../domain/usage.ts";

/** What counts of what a log tells. `at` is when it happened, or ended; times are in ms, costs in USD. */

export interface TurnFact {
  readonly at: number;
  readonly ended: TurnEnded;
  /** The tool that its prompt came through. */
  readonly tool: string;
  /** Time that it ran with a request open. */
  readonly waitedMs: number;
  /** How its cost is made up. */
  readonly costByModel: ReadonlyMap<string, number>;
}

export interface AnswerFact {
  readonly at: number;
  readonly kind: "permission" | "question";
  readonly decision: "allow" | "deny";
  readonly by: AnsweredBy;
  /** Undefined when the log does not say when it was asked. */
  readonly waitMs: number | undefined;
}

/** Told what has happened in a session, in order. */
export interface FactSink {
  turn(fact: TurnFact): void;
  answer(fact: AnswerFact): void;
  result(fact: { readonly at: number; readonly usage: ResultUsage }): void;
  /** Requests were open for this time, however many. */
  waited(fact: { readonly at: number; readonly ms: number }): void;
  apiRetry(at: number): void;
  /** A Claude Code process ended unexpectedly. */
  crash(at: number): void;
}

/** Who interrupts or cancels a turn has ended it: nothing broke down. */
export function isFailure({ outcome }: TurnEnded): boolean {
  return outcome === "failed" || outcome === "lost";
}
