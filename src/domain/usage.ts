import { z } from "zod";
import type { SessionEvent } from "./event.ts";

/** Reads the usage in a result of Claude Code. The form may change with versions, so missing and odd values count as 0. */

const amount = z.number().nonnegative().catch(0);

const Usage = z.object({
  input_tokens: amount,
  output_tokens: amount,
  cache_read_input_tokens: amount,
  cache_creation_input_tokens: amount,
});

const NONE = { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };

const ResultMessage = z.object({
  type: z.literal("result"),
  num_turns: amount,
  usage: z.unknown(),
  modelUsage: z.record(z.string(), z.object({ costUSD: amount }).catch({ costUSD: 0 })).catch({}),
});

export const TOKEN_KINDS = ["input", "output", "cache_read", "cache_creation"] as const;
export type Tokens = Readonly<Record<(typeof TOKEN_KINDS)[number], number>>;

export interface ResultUsage {
  /** Number of calls of the model. */
  readonly modelCalls: number;
  /** Tokens of this result alone. */
  readonly tokens: Tokens;
  /** Cost in USD by model, cumulative over the session, as Claude Code counts. */
  readonly costByModel: Readonly<Record<string, number>>;
}

/** Returns `undefined` if `event` is not a result of Claude Code. */
export function usageOf(event: SessionEvent): ResultUsage | undefined {
  if (event.type !== "message" || event.data.message["type"] !== "result") return undefined;
  const { modelUsage, num_turns: modelCalls, usage } = ResultMessage.parse(event.data.message);
  const costs = Object.entries(modelUsage).map(([model, { costUSD }]) => [model, costUSD] as const);
  return {
    modelCalls,
    tokens: tokensOf(usage),
    costByModel: Object.fromEntries(costs),
  };
}

/** Rounds a sum to 9 decimals, which removes errors of floating-point addition: 0.0056, not 0.005600000000000001. */
export function roundUsd(sum: number): number {
  return Number(sum.toFixed(9));
}

/** Reads the token counts of a result's `usage`. */
export function tokensOf(usage: unknown): Tokens {
  const used = Usage.catch(NONE).parse(usage);
  return {
    input: used.input_tokens,
    output: used.output_tokens,
    cache_read: used.cache_read_input_tokens,
    cache_creation: used.cache_creation_input_tokens,
  };
}
