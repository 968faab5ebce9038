import type { ResultUsage } from "../domain/usage.ts";
import type { FactSink, TurnFact } from "./facts.ts";
import { Sum } from "./sum.ts";

/** A day of any time zone begins with one of these: whatever the zone, its days are sums of them. */
export const QUARTER_MS = 15 * 60_000;

/** What happened in a session by quarters of an hour, each by its beginning: far less to keep than its facts. */
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

  /** How often does not matter here, only how long: see `waited`. */
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
