import type { SessionOptions } from "../../domain/options.ts";

/** Models that think within a budget of tokens: Claude Code drops it for all later ones, which decide by themselves. */
const BUDGETED = /claude-(?:\d|(?:opus|sonnet|haiku)-4(?:-[015](?!\d)|(?!-\d(?!\d))))/;
/** Names that Claude Code resolves to the newest model of a kind. */
const ALIAS = /^(?:best|default|fable|haiku|opus|opusplan|sonnet)(?:\[1m\])?$/;

/** Whether a budget of tokens for thinking would come to nothing, in words. Of a name that is nobody's it cannot be known. */
export function thinkingWarnings({ model, thinking }: Pick<Partial<SessionOptions>, "model" | "thinking">): string[] {
  if (thinking?.type !== "enabled") return [];
  const isKnown = model === undefined || ALIAS.test(model) || model.includes("claude-");
  if (!isKnown || BUDGETED.test(model ?? "")) return [];
  const whose = model === undefined ? "the default model" : `model ${model}`;
  return [
    `thinking.budgetTokens: has no effect with ${whose}, which decides by itself how much it thinks. Use effort, or a model up to Claude 4.5.`,
  ];
}
