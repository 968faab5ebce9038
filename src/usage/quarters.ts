import type { ResultUsage } from "../domain/usage.ts";
import type { FactSink, TurnFact } from "./facts.ts";
import { Sum } from "./sum.ts";

/** Days of every time zone begin at a multiple of `QUARTER_MS`, so each day is a sum of quarters. */
export const QUARTER_MS = 15 * 60_000;

/** Sums of a session by quarter of an hour, keyed by start time. Far smaller than the facts. */
export class Quarters implements FactSink {
  readonly sums = new Map<number, Sum>();

  turn(fact: TurnFact): void {
    this.#at(fact.at).turn(fact);
  }

  result({ at, usage }: { readonly at: number; readonly usage: ResultUsage }): void {
    this.#at(at).used(usage.tokens);
  }

  waited({ at, ms }: { readonly at: number; readonly ms: number }): void {
    this.#at(at).waitedMs += ms;
  }

  /** Not counted: only the length of waits matters here (`waited`). */
  answer(): void {}

  apiRetry(): void {}

  crash(): void {}

  #at(at: number): Sum {
    const start = quarterOf(at);
    const sum = this.sums.get(start) ?? new Sum();
    this.sums.set(start, sum);
    return sum;
  }
}

export function quarterOf(at: number): number {
  return Math.floor(at / QUARTER_MS) * QUARTER_MS;
}
