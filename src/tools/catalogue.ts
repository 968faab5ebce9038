import { z } from "zod";
import { KNOWN_TOOLS, knownTool } from "../domain/options/known-tools.ts";
import type { SessionOptions } from "../domain/options.ts";
import { didYouMean } from "../domain/suggest.ts";
import { oneLine } from "../view/size.ts";

/**
 * The names of tools and models in a caller's options. Claude Code ignores a name it does not know, which makes a misspelt
 * rule a silent one: names are corrected where the intent is clear, and the answer warns of the rest.
 */

const LISTS = ["allowedTools", "disallowedTools", "tools"] as const;
const MAX_WARNINGS = 10;
/** A name, and behind it what a rule says of the call: "Bash(git *)". */
const RULE = /^([^(]*)(.*)$/su;

interface NamedTools<T> {
  readonly options: T;
  readonly warnings: readonly string[];
}

type Options = Partial<Pick<SessionOptions, "agents" | (typeof LISTS)[number]>>;

/** Of all that a session is begun with, whichever way: the options of a start, of a resume from disk, and their subagents. */
export function nameTools<T extends Options>(options: T): NamedTools<T> {
  const own = namedLists(options, LISTS);
  const agents = Object.entries(options.agents ?? {}).map(([name, agent]) => {
    const { renamed, unknown } = namedLists(agent, ["disallowedTools", "tools"]);
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

interface NamedLists {
  readonly renamed: Readonly<Record<string, readonly string[]>>;
  readonly unknown: readonly string[];
}

function namedLists<K extends string>(options: { readonly [L in K]?: unknown }, names: readonly K[]): NamedLists {
  const lists = names.flatMap((list) => {
    const rules = z.array(z.string()).safeParse(options[list]).data;
    return rules ? [{ list, rules }] : [];
  });
  return {
    renamed: Object.fromEntries(lists.map(({ list, rules }) => [list, rules.map(rightName)])),
    unknown: lists.flatMap(({ list, rules }) => rules.flatMap((rule) => warningsOf(list, rule))),
  };
}

/** The rule with the name of its tool as Claude Code spells it. */
export function rightName(rule: string): string {
  const [, name = "", rest = ""] = RULE.exec(rule) ?? [];
  return (knownTool(name.trim())?.name ?? name) + rest;
}

function warningsOf(list: string, rule: string): string[] {
  const [, name = ""] = RULE.exec(rule) ?? [];
  const isPlain = !name.startsWith("mcp__") && !name.includes("*");
  if (!isPlain || knownTool(name.trim())) return [];
  const known = KNOWN_TOOLS.map((tool) => tool.name);
  return [`${list}: there is no tool ${oneLine(name, 60)} known to this server.${didYouMean(name, known)}`];
}

/** Models that think within a budget of tokens: Claude Code drops it for all later ones, which decide by themselves. */
const BUDGETED = /claude-(?:\d|(?:opus|sonnet|haiku)-4(?:-[015](?!\d)|(?!-\d(?!\d))))/;
/** Models that think whether or not they are told to: Claude Code drops `disabled` for them. */
const ALWAYS = /claude-(?:fable-|(?:haiku|opus|sonnet)-5-5(?!\d))/;
/** Names that Claude Code resolves to the newest model of a kind. */
const ALIAS = /^(?:best|default|fable|haiku|opus|opusplan|sonnet)(?:\[1m\])?$/;
/** Former models, for which Claude Code takes the newest of their kind. */
const REPLACED = /^claude-opus-4(?:-[01])?(?:-\d{8})?(?:\[1m\])?$/;

/** Why `thinking` would have no effect with this model, in words. An unknown model name gives no warning. */
export function thinkingWarnings({ model, thinking }: Pick<Partial<SessionOptions>, "model" | "thinking">): string[] {
  const isNewest = model === undefined || ALIAS.test(model) || REPLACED.test(model);
  const whose = model === undefined ? "the default model" : `model ${model}`;
  if (thinking?.type === "enabled" && (isNewest || (model.includes("claude-") && !BUDGETED.test(model)))) {
    const why = `has no effect with ${whose}, which decides by itself how much it thinks`;
    return [`thinking.budgetTokens: ${why}. Use effort, or a model up to Claude 4.5.`];
  }
  if (thinking?.type === "disabled" && (isNewest || ALWAYS.test(model))) {
    const advice = "Use effort: low, or an earlier model, such as claude-sonnet-5.";
    return [`thinking.type: disabled has no effect with ${whose}, which always thinks. ${advice}`];
  }
  return [];
}
