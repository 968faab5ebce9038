// Usage and cost of a session.

/** Input and output prices, USD per million tokens. */
const PRICES = { "claude-opus-5-5": [4, 20], "claude-sonnet-5-5": [2, 10], "claude-haiku-5-5": [0.1, 0.5] };
const COUNTS = {
  inputTokens: "input_tokens",
  outputTokens: "output_tokens",
  cacheReadInputTokens: "cache_read_input_tokens",
  cacheCreationInputTokens: "cache_creation_input_tokens",
};

function costOf(model, usage) {
  const [input, output] = PRICES[model] ?? PRICES["claude-opus-5-5"];
  const tokens =
    usage.input_tokens * input +
    usage.output_tokens * output +
    usage.cache_read_input_tokens * input * 0.1 +
    usage.cache_creation_input_tokens * input * 1.25;
  return tokens / 1_000_000;
}

/** Sums over all turns, including turns before a resume. */
export class Account {
  models = {};
  apiMs = 0;
  added = 0;
  removed = 0;

  add(model, usage) {
    const entry = (this.models[model] ??= {
      inputTokens: 0,
      outputTokens: 0,
      cacheReadInputTokens: 0,
      cacheCreationInputTokens: 0,
      webSearchRequests: 0,
      costUSD: 0,
      contextWindow: 1_000_000,
      maxOutputTokens: 128_000,
    });
    for (const [name, field] of Object.entries(COUNTS)) entry[name] += usage[field];
    entry.costUSD += costOf(model, usage);
  }

  get cost() {
    return Object.values(this.models).reduce((sum, { costUSD }) => sum + costUSD, 0);
  }
}

/** Usage of one turn. */
export function noUsage() {
  return { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 };
}

export function addUsage(sum, usage) {
  for (const field of Object.keys(sum)) sum[field] += usage[field] ?? 0;
}
