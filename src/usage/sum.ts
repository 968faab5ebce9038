import type { Tokens } from "../domain/usage.ts";
import { isFailure, type TurnFact } from "./facts.ts";

/** Sums over turns. Times are in ms, costs in USD. */
export class Sum {
  turns = 0;
  failed = 0;
  costUsd = 0;
  durationMs = 0;
  workedMs = 0;
  waitedMs = 0;
  readonly tokens = { input: 0, output: 0, cacheRead: 0, cacheCreation: 0 };
  readonly costByModel = new Map<string, number>();

  turn({ costByModel, ended, waitedMs }: TurnFact): void {
    this.turns += 1;
    if (isFailure(ended)) this.failed += 1;
    this.costUsd += ended.costUsd;
    this.durationMs += ended.durationMs;
    this.workedMs += Math.max(0, ended.durationMs - waitedMs);
    this.#addCosts(costByModel);
  }

  used(tokens: Tokens): void {
    this.tokens.input += tokens.input;
    this.tokens.output += tokens.output;
    this.tokens.cacheRead += tokens.cache_read;
    this.tokens.cacheCreation += tokens.cache_creation;
  }

  add(other: Sum): void {
    this.turns += other.turns;
    this.failed += other.failed;
    this.costUsd += other.costUsd;
    this.durationMs += other.durationMs;
    this.workedMs += other.workedMs;
    this.waitedMs += other.waitedMs;
    this.tokens.input += other.tokens.input;
    this.tokens.output += other.tokens.output;
    this.tokens.cacheRead += other.tokens.cacheRead;
    this.tokens.cacheCreation += other.tokens.cacheCreation;
    this.#addCosts(other.costByModel);
  }

  #addCosts(costs: ReadonlyMap<string, number>): void {
    for (const [model, costUsd] of costs) this.costByModel.set(model, (this.costByModel.get(model) ?? 0) + costUsd);
  }
}

export function costliestFirst(a: { readonly costUsd: number }, b: { readonly costUsd: number }): number {
  return b.costUsd - a.costUsd;
}

/** Returns the value at `key`. If the map has none, stores and returns that of `make`. */
export function getOrCreate<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}
