import { z } from "zod";
import { KNOWN_TOOLS, knownTool } from "../domain/options/known-tools.ts";
import type { SessionOptions } from "../domain/options.ts";
import { didYouMean } from "../domain/suggest.ts";
import { oneLine } from "../view/size.ts";

/**
 * Checks names of tools and models in a caller's options. Claude Code ignores an unknown name, so a rule with a typo would
 * silently have no effect. Names with a clear intent are corrected; the answer warns of the rest.
 */

const LISTS = ["allowedTools", "disallowedTools", "tools"] as const;
const MAX_WARNINGS = 10;
/** Matches a rule such as "Bash(git *)": the tool name, then the parenthesized pattern. */
const RULE = /^([^(]*)(.*)$/su;

interface CheckedOptions<T> {
  readonly options: T;
  readonly warnings: readonly string[];
}

type Options = Partial<Pick<SessionOptions, "agents" | (typeof LISTS)[number]>>;

/**
 * Corrects tool names in `options` and in the subagents of `options.agents`. Applies to every way to begin a session: start and
 * resume from disk.
 */
export function correctToolNames<T extends Options>(options: T): CheckedOptions<T> {
  const own = checkLists(options, LISTS);
  const agents = Object.entries(options.agents ?? {}).map(([name, agent]) => {
    const { renamed, unknown } = checkLists(agent, ["disallowedTools", "tools"]);
    return {
      entry: [name, { ...agent, ...renamed }] as const,
      unknown: unknown.map((text) => `agents.${oneLine(name, 60)}.${text}`),
    };
  });
  const unknown = [...own.unknown, ...agents.flatMap((agent) => agent.unknown)];
  const more = unknown.length - MAX_WARNINGS;
  const shown = unknown.slice(0, MAX_WARNINGS);
  return {
    options: {
      ...options,
      ...own.renamed,
      ...(options.agents && { agents: Object.fromEntries(agents.map(({ entry }) => entry)) }),
    },
    warnings: more > 0 ? [...shown, `And ${String(more)} more.`] : shown,
  };
}

interface CheckedLists {
  readonly renamed: Readonly<Record<string, readonly string[]>>;
  readonly unknown: readonly string[];
}

function checkLists<K extends string>(options: { readonly [L in K]?: unknown }, names: readonly K[]): CheckedLists {
  const lists = names.flatMap((list) => {
    const rules = z.array(z.string()).safeParse(options[list]).data;
    return rules ? [{ list, rules }] : [];
  });
  return {
    renamed: Object.fromEntries(lists.map(({ list, rules }) => [list, rules.map(correctToolName)])),
    unknown: lists.flatMap(({ list, rules }) => rules.flatMap((rule) => warnUnknownTool(list, rule))),
  };
}

/** Replaces the tool name of a rule by Claude Code's spelling. */
export function correctToolName(rule: string): string {
  const [, name = "", rest = ""] = RULE.exec(rule) ?? [];
  return (knownTool(name.trim())?.name ?? name) + rest;
}

function warnUnknownTool(list: string, rule: string): string[] {
  const [, name = ""] = RULE.exec(rule) ?? [];
  const isPlain = !name.startsWith("mcp__") && !name.includes("*");
  if (!isPlain || knownTool(name.trim())) return [];
  const known = KNOWN_TOOLS.map((tool) => tool.name);
  return [`${list}: this server knows no tool ${oneLine(name, 60)}.${didYouMean(name, known)}`];
}

/**
 * Models with a token budget for thinking. Later models choose the amount themselves; Claude Code drops `budgetTokens` for
 * them.
 */
const BUDGETED_MODELS = /claude-(?:\d|(?:opus|sonnet|haiku)-4(?:-[015](?!\d)|(?!-\d(?!\d))))/;
/** Models with permanent thinking. Claude Code drops `disabled` for them. */
const ALWAYS_THINKING_MODELS = /claude-(?:fable-|(?:haiku|opus|sonnet)-5-5(?!\d))/;
/** Aliases resolved by Claude Code to the newest model of a kind. */
const ALIAS = /^(?:best|default|fable|haiku|opus|opusplan|sonnet)(?:\[1m\])?$/;
/** Retired models, replaced by Claude Code with the newest of their kind. */
const RETIRED_MODELS = /^claude-opus-4(?:-[01])?(?:-\d{8})?(?:\[1m\])?$/;

/** Explains why `thinking` would have no effect with `model`. An unknown model name gives no warning. */
export function thinkingWarnings({ model, thinking }: Pick<Partial<SessionOptions>, "model" | "thinking">): string[] {
  const isNewest = model === undefined || ALIAS.test(model) || RETIRED_MODELS.test(model);
  const whose = model === undefined ? "the default model" : `model ${model}`;
  if (thinking?.type === "enabled" && (isNewest || (model.includes("claude-") && !BUDGETED_MODELS.test(model)))) {
    const why = `has no effect with ${whose}, which decides by itself how much it thinks`;
    return [`thinking.budgetTokens: ${why}. Use effort, or a model up to Claude 4.5.`];
  }
  if (thinking?.type === "disabled" && (isNewest || ALWAYS_THINKING_MODELS.test(model))) {
    const advice = "Use effort: low, or an earlier model, such as claude-sonnet-5.";
    return [`thinking.type: disabled has no effect with ${whose}, which always thinks. ${advice}`];
  }
  return [];
}
