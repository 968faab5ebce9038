import type { TurnEnded } from "../domain/event.ts";
import { roundUsd, TOKEN_KINDS, type ResultUsage } from "../domain/usage.ts";
import { isFailure, type AnswerFact, type FactSink, type TurnFact } from "./facts.ts";
import { costliestFirst, getOrCreate } from "./sum.ts";

/** Adds up the facts of all sessions. Times are in ms, costs in USD. */

export class Tally implements FactSink {
  readonly #statuses = new Map<string, number>();
  readonly #outcomes = new Map<string, number>();
  readonly #categories = new Map<string, number>();
  readonly #tools = new Map<string, Turns>();
  readonly #models = new Map<string, number>();
  readonly #answers = new Map<string, Answers>();
  readonly #all = new Turns();
  readonly #tokens = { input: 0, output: 0, cache_read: 0, cache_creation: 0 };
  #open = 0;
  #apiMs = 0;
  #waitedMs = 0;
  #apiRetries = 0;
  #crashes = 0;

  session(status: string, open: number): void {
    increase(this.#statuses, status);
    this.#open += open;
  }

  turn({ costByModel, ended, tool }: TurnFact): void {
    increase(this.#outcomes, ended.outcome);
    if (isFailure(ended)) increase(this.#categories, ended.category ?? "unknown");
    this.#apiMs += ended.durationApiMs;
    this.#all.add(ended);
    getOrCreate(this.#tools, tool, () => new Turns()).add(ended);
    for (const [model, costUsd] of costByModel) increase(this.#models, model, costUsd);
  }

  answer({ by, decision, kind, waitMs }: AnswerFact): void {
    const group = getOrCreate(this.#answers, `${kind} ${decision} ${by}`, () => ({
      kind,
      decision,
      by,
      count: 0,
      waits: [],
    }));
    group.count += 1;
    if (waitMs !== undefined) group.waits.push(waitMs);
  }

  result({ usage: { tokens } }: { readonly usage: ResultUsage }): void {
    for (const kind of TOKEN_KINDS) this.#tokens[kind] += tokens[kind];
  }

  waited({ ms }: { readonly ms: number }): void {
    this.#waitedMs += ms;
  }

  apiRetry(): void {
    this.#apiRetries += 1;
  }

  crash(): void {
    this.#crashes += 1;
  }

  /** Returns the report as data, for programs. */
  report() {
    const sessions = [...this.#statuses.values()].reduce((sum, number) => sum + number, 0);
    return {
      sessions: { total: sessions, byStatus: Object.fromEntries(this.#statuses) },
      turns: {
        ...this.#all.report(),
        byOutcome: Object.fromEntries(this.#outcomes),
        failuresByCategory: Object.fromEntries(this.#categories),
        waitedMs: this.#waitedMs,
        apiMs: this.#apiMs,
      },
      tokens: { ...this.#tokens },
      requests: {
        open: this.#open,
        answered: [...this.#answers.values()].map(({ waits, ...group }) => ({ ...group, waitMs: spreadOf(waits) })),
      },
      apiRetries: this.#apiRetries,
      crashes: this.#crashes,
      tools: [...this.#tools].map(([tool, turns]) => ({ tool, ...turns.report() })).toSorted(costliestFirst),
      models: [...this.#models]
        .map(([model, costUsd]) => ({ model, costUsd: roundUsd(costUsd) }))
        .toSorted(costliestFirst),
    };
  }
}

export type Report = ReturnType<Tally["report"]>;

interface Answers extends Omit<AnswerFact, "at" | "waitMs"> {
  count: number;
  readonly waits: number[];
}

/** Statistics of turns. */
class Turns {
  readonly #durations: number[] = [];
  #failures = 0;
  #costUsd = 0;

  add(ended: TurnEnded): void {
    this.#durations.push(ended.durationMs);
    this.#costUsd += ended.costUsd;
    if (isFailure(ended)) this.#failures += 1;
  }

  report() {
    const total = this.#durations.length;
    return {
      total,
      failures: this.#failures,
      errorRate: total === 0 ? null : Number((this.#failures / total).toFixed(4)),
      durationMs: spreadOf(this.#durations),
      costUsd: roundUsd(this.#costUsd),
    };
  }
}

export interface Spread {
  readonly median: number;
  readonly p95: number;
  readonly max: number;
}

/** Returns percentiles by nearest rank, so each value occurred; `null` without values. */
function spreadOf(values: readonly number[]): Spread | null {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = (share: number): number => sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? 0;
  return sorted.length === 0 ? null : { median: rank(0.5), p95: rank(0.95), max: rank(1) };
}

function increase(counts: Map<string, number>, key: string, by = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
