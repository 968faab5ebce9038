import { knownTool } from "../options/known-tools.ts";

/**
 * Permission rule in Claude Code's syntax: `Tool`, or `Tool(content)`. `engine/rules` does the matching. `parseRule` refuses
 * rules that Claude Code accepts silently and never matches.
 */
export interface Rule {
  /** Rule as written. */
  readonly text: string;
  readonly toolName: string;
  /** `undefined` means every use of the tool. */
  readonly content: string | undefined;
}

export const RULE_BEHAVIORS = ["allow", "ask", "deny"] as const;
export type RuleBehavior = (typeof RULE_BEHAVIORS)[number];

/** Splits a rule into tool and content without further checks. Returns `undefined` for invalid syntax. */
export function readRule(text: string): Pick<Rule, "content" | "toolName"> | undefined {
  const [, toolName, inside] = SYNTAX.exec(text) ?? [];
  if (toolName === undefined) return undefined;
  return { toolName, content: inside === undefined || meansEveryUse(toolName, inside) ? undefined : inside };
}

type ParseResult = { ok: true; rule: Rule } | { ok: false; problem: string };

const SYNTAX = /^([A-Za-z][\w.*-]*)(?:\((.*)\))?$/s;
const MAX_LENGTH = 2_000;

/** Checks a rule. `problem` names the error and the correct form. */
export function parseRule(text: string, behavior: RuleBehavior): ParseResult {
  const shown = text.length > 100 ? `${text.slice(0, 100)}...` : text;
  const wrong = (problem: string): ParseResult => ({ ok: false, problem: `the rule ${shown} ${problem}` });
  const [, toolName, inside] = SYNTAX.exec(text) ?? [];
  if (toolName === undefined || text.length > MAX_LENGTH) {
    return wrong("cannot be read. Write Tool or Tool(content), such as Read, Bash(ls:*) or Edit(src/**).");
  }
  if (inside?.trim() === "") return wrong("has nothing in its brackets. Leave them out to mean every use of the tool.");
  const content = inside === undefined || meansEveryUse(toolName, inside) ? undefined : inside;
  const problem =
    findNameProblem(toolName, behavior) ?? (content === undefined ? undefined : findContentProblem(toolName, content));
  return problem === undefined ? { ok: true, rule: { text, toolName, content } } : wrong(problem);
}

/**
 * Reads a deny rule as given to Claude Code. An unreadable or misspelt rule denies its whole tool, the widest possible meaning.
 */
export function parseDenyRule(text: string): Rule {
  const parsed = parseRule(text, "deny");
  if (parsed.ok) return parsed.rule;
  const name = text.split("(", 1)[0]?.trim() ?? "";
  return { text, toolName: knownTool(name)?.name ?? name, content: undefined };
}

/** Tools of similar effect, which Claude Code matches with rules for the tool in the key. */
const FAMILIES: ReadonlyMap<string, readonly string[]> = new Map([
  ["Edit", ["Edit", "Write", "MultiEdit", "NotebookEdit"]],
  ["Read", ["Read", "Glob", "Grep", "LS", "NotebookRead"]],
  ["Agent", ["Agent", "Task"]],
  ["Task", ["Agent", "Task"]],
]);

/** Returns the tools that a rule for `toolName` covers. A name of an MCP server, or with a `*`, covers itself. */
export function toolsCoveredBy(toolName: string): readonly string[] {
  return FAMILIES.get(toolName) ?? [toolName];
}

/** True for content that means every use: `Bash(*)` is `Bash`. */
function meansEveryUse(toolName: string, content: string): boolean {
  return content === "*" || (SHELLS.has(toolName) && content === ":*");
}

const SHELLS: ReadonlySet<string> = new Set(["Bash", "PowerShell"]);
/** Tools whose paths are matched by `Edit` or `Read` rules only. */
const RULED_BY: ReadonlyMap<string, string> = new Map([
  ["Write", "Edit"],
  ["MultiEdit", "Edit"],
  ["NotebookEdit", "Edit"],
  ["Glob", "Read"],
  ["Grep", "Read"],
  ["LS", "Read"],
  ["NotebookRead", "Read"],
]);

function findNameProblem(toolName: string, behavior: RuleBehavior): string | undefined {
  const { name } = knownTool(toolName) ?? {};
  const isMisspelt = name !== undefined && name !== toolName && name.toLowerCase() === toolName.toLowerCase();
  if (isMisspelt) return `would never match: the tool is called ${name}. Use that name.`;
  if (!toolName.includes("*") && toolName !== "mcp__") return undefined;
  if (!toolName.startsWith("mcp__")) return "has a * in the name of a tool, which only tools of MCP servers may have.";
  const isOfServer = /^mcp__[^*]+?__/.test(toolName);
  if (behavior !== "allow" || isOfServer) return undefined;
  return "would allow the tools of any MCP server. Name the server, as in mcp__github__*.";
}

function findContentProblem(toolName: string, content: string): string | undefined {
  const ruledBy = RULED_BY.get(toolName);
  if (ruledBy !== undefined) return `has a path, which only ${ruledBy} rules can have. Write ${ruledBy}(${content}).`;
  if (toolName.startsWith("mcp__")) return `cannot have content. Write ${toolName} alone.`;
  if (SHELLS.has(toolName)) return findCommandProblem(content);
  switch (toolName) {
    case "Read":
    case "Edit":
      return findPathProblem(content);
    case "WebFetch":
      return /^domain:[^\s/:]+$/.test(content) ? undefined : "must name a host: WebFetch(domain:example.com).";
    case "Agent":
    case "Task":
    case "Skill":
      return undefined;
    default:
      return `has content, which rules for ${toolName} cannot have. Write ${toolName} alone.`;
  }
}

function findCommandProblem(content: string): string | undefined {
  if (/[\n\r]/.test(content)) return "has a line break. Write a rule for each command.";
  const isInside = content.slice(0, -2).includes(":*");
  return isInside ? "has :* before its end. There it means any rest; anywhere else write *." : undefined;
}

function findPathProblem(content: string): string | undefined {
  if (content.startsWith("!"))
    return "begins with !, which rules do not support. Use another rule: a deny rule beats all others.";
  if (content.includes("\\")) return "has a backslash. Write paths with /, the root of a drive as //c/.";
  if (content.split("/").includes("..")) return "has a .. in its path. Write //absolute/path or ~/path.";
  const sets = content.match(/\[[^\]/]+\]/g) ?? [];
  return sets.some(isReversedRange) ? "has brackets that cannot be read. Write them as [abc] or [a-z]." : undefined;
}

/** True for a reversed range, as in `[z-a]`. */
function isReversedRange(set: string): boolean {
  return [...set.matchAll(/(.)-(?=([^\]]))/gu)].some(([, from = "", to = ""]) => from > to);
}
