import { KNOWN_TOOLS, knownTool } from "../../domain/options/known-tools.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { didYouMean } from "../../domain/suggest.ts";
import { oneLine } from "../present/size.ts";

/**
 * The names of tools in a caller's options. Claude Code ignores a name it does not know, which makes a misspelt rule a
 * silent one: names are put right where it is clear what is meant, and the rest is told.
 */

const LISTS = ["allowedTools", "disallowedTools", "tools"] as const;
const WARNINGS_MOST = 10;
/** A name, and behind it what a rule says of the call: "Bash(git *)". */
const RULE = /^([^(]*)(.*)$/su;

export interface NamedTools {
  readonly options: SessionOptions;
  readonly warnings: readonly string[];
}

export function nameTools(options: SessionOptions): NamedTools {
  const lists = LISTS.flatMap((list) => {
    const names = options[list];
    return Array.isArray(names) ? [{ list, names }] : [];
  });
  const renamed = lists.map(({ list, names }) => [list, names.map(rightName)] as const);
  const unknown = lists.flatMap(({ list, names }) => names.flatMap((name) => warningsOf(list, name)));
  const more = unknown.length - WARNINGS_MOST;
  const told = unknown.slice(0, WARNINGS_MOST);
  return {
    options: { ...options, ...Object.fromEntries(renamed) },
    warnings: more > 0 ? [...told, `And ${String(more)} more.`] : told,
  };
}

function rightName(rule: string): string {
  const [, name = "", rest = ""] = RULE.exec(rule) ?? [];
  return (knownTool(name)?.name ?? name) + rest;
}

function warningsOf(list: string, rule: string): string[] {
  const [, name = ""] = RULE.exec(rule) ?? [];
  const isPlain = !name.startsWith("mcp__") && !name.includes("*");
  if (!isPlain || knownTool(name)) return [];
  const known = KNOWN_TOOLS.map((tool) => tool.name);
  return [`${list}: there is no tool ${oneLine(name, 60)} known to this server.${didYouMean(name, known)}`];
}
