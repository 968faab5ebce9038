import { CAN_RUN } from "../../domain/approvals/risk.ts";
import { toolsCoveredBy, type Rule, type RuleBehavior } from "../../domain/approvals/rule.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import { allowsCommand, matchesGlob, isExactly, judgeCommand, matchesCommand } from "../../security/shell/rules.ts";
import { whyUnclear } from "../../security/shell/unclear-paths.ts";
import { matchesPath, type Bases } from "./rule-path.ts";

/**
 * Evaluates rules for a request: deny beats ask, ask beats allow. An allow rule has to cover all of the request; for a deny or
 * ask rule any part is enough (`widely`).
 */

export interface Rules extends Readonly<Record<RuleBehavior, readonly Rule[]>> {
  readonly home: string;
}

export interface Verdict {
  readonly behavior: RuleBehavior;
  readonly rule: string;
  /** Set if the command cannot be parsed: the reason. `rule` then only may concern the command. */
  readonly unclear?: string;
}

/** Returns `undefined` if no rule applies. */
export function judge(ask: PermissionRequest, rules: Rules, cwd: string): Verdict | undefined {
  const bases = basesOf(ask, rules, cwd);
  for (const behavior of ["deny", "ask"] as const) {
    const rule = rules[behavior].find((each) => mayMatch(each, ask, bases));
    if (rule) return { behavior, rule: rule.text };
  }
  const unclear = unclearBy([...rules.deny, ...rules.ask], ask);
  const allowing = rules.allow.find((each) => allows(each, ask, bases) && (!unclear || isTheCommand(each, ask)));
  if (allowing) return { behavior: "allow", rule: allowing.text };
  return unclear && { behavior: "ask", rule: unclear.rule, unclear: unclear.why };
}

/** A rule that a request cannot be checked against, with the reason in words. */
interface Unchecked {
  readonly rule: string;
  readonly why: string;
}

/** Returns the first rule that may match a shell command, if the text of the command hides the programs or the files used. */
export function uncheckedBy(denying: readonly Rule[], ask: PermissionRequest): Unchecked | undefined {
  const { input, toolName } = ask;
  const unread = typeof input["command"] === "string" ? whyUnclear(input["command"]) : undefined;
  const ofFiles = unread === undefined ? undefined : denying.find((rule) => mayBeMentioned(rule, toolName));
  return (
    unclearBy(denying, ask) ?? (ofFiles && { rule: ofFiles.text, why: `${unread ?? ""} hides which files it means` })
  );
}

/**
 * Returns a deny or ask rule that may match an unparsable command. An approver then decides, unless a rule allows exactly this
 * text (`isTheCommand`).
 */
function unclearBy(rules: readonly Rule[], { input, toolName }: PermissionRequest): Unchecked | undefined {
  const shell = shellOf(toolName);
  const { command } = input;
  if (shell === undefined || typeof command !== "string") return undefined;
  for (const { content, text, toolName: named } of rules) {
    if (named !== shell || content === undefined) continue;
    const verdict = judgeCommand({ ask: [], deny: [content] }, command, shell === "Bash");
    if (verdict?.behavior === "unreadable") return { rule: text, why: verdict.problem };
  }
  return undefined;
}

/** True if the rule allows exactly the command, letter by letter. */
export function isTheCommand({ content }: Rule, { input }: PermissionRequest): boolean {
  const { command } = input;
  return content !== undefined && typeof command === "string" && isExactly(content, command);
}

export function basesOf({ cwd: real }: PermissionRequest, { home }: Pick<Rules, "home">, cwd: string): Bases {
  return { cwd: real === undefined ? [cwd] : [cwd, real], home };
}

/** True if `rule` covers the whole request. Never for a question, or a change of a file that runs commands (`CAN_RUN`). */
export function allows(rule: Rule, ask: PermissionRequest, bases: Bases): boolean {
  if (ask.kind === "question" || ask.risk?.why.includes(CAN_RUN)) return false;
  if (!namesTool(rule.toolName, ask.toolName)) return false;
  const { content } = rule;
  if (content === undefined) return true;
  const { input, paths = [], toolName } = ask;
  if (shellOf(toolName) !== undefined) {
    const { command } = input;
    return typeof command === "string" && allowsCommand(content, command, toolName === "Bash");
  }
  if (isForFiles(rule)) return paths.length > 0 && paths.every((path) => matchesPath(content, path, bases, false));
  return matchesContent(content, ask, false);
}

function mayMatch(rule: Rule, ask: PermissionRequest, bases: Bases): boolean {
  if (!namesTool(rule.toolName, ask.toolName) && rule.toolName !== shellOf(ask.toolName)) return false;
  const { content } = rule;
  if (content === undefined) return true;
  const { input, paths, toolName } = ask;
  const shell = shellOf(toolName);
  if (shell !== undefined) {
    const { command } = input;
    return typeof command !== "string" || matchesCommand(content, command, shell === "Bash");
  }
  // A request without `paths` may concern a denied file.
  if (isForFiles(rule)) return paths?.some((path) => matchesPath(content, path, bases, true)) ?? true;
  return matchesContent(content, ask, true);
}

/** True if a rule for files matches a path in `mentions` of a shell command. */
export function mayMatchMention(rule: Rule, toolName: string, mentions: readonly string[], bases: Bases): boolean {
  const { content = "" } = rule;
  return mayBeMentioned(rule, toolName) && mentions.some((path) => matchesPath(content, path, bases, true));
}

/** True if the rule is for files that a command of the tool could use. */
function mayBeMentioned(rule: Rule, toolName: string): boolean {
  return rule.content !== undefined && isForFiles(rule) && shellOf(toolName) !== undefined;
}

/** Returns the tool whose rules hold for commands of `toolName`: Monitor runs its commands in Bash. */
function shellOf(toolName: string): "Bash" | "PowerShell" | undefined {
  if (toolName === "Bash" || toolName === "Monitor") return "Bash";
  return toolName === "PowerShell" ? "PowerShell" : undefined;
}

function isForFiles({ toolName }: Rule): boolean {
  return toolName === "Edit" || toolName === "Read";
}

function namesTool(named: string, toolName: string): boolean {
  if (toolsCoveredBy(named).includes(toolName)) return true;
  if (!named.startsWith("mcp__")) return false;
  // `mcp__server` covers all tools of the server.
  return named.includes("*") ? matchesGlob(named, toolName) : toolName.startsWith(`${named}__`) && isServer(named);
}

function isServer(named: string): boolean {
  return !named.slice("mcp__".length).includes("__");
}

/** Compares the `content` of a rule for a tool without commands and files. */
function matchesContent(content: string, { input, toolName }: PermissionRequest, widely: boolean): boolean {
  switch (toolName) {
    case "WebFetch":
      return matchesHost(content.slice("domain:".length), input["url"], widely);
    case "Agent":
    case "Task":
      return matchesText(input["subagent_type"], content);
    case "Skill":
      return [input["skill"], input["command"]].some((name) => matchesText(name, content));
    default:
      return false;
  }
}

function matchesText(value: unknown, content: string): boolean {
  if (typeof value !== "string") return false;
  return content.endsWith(":*") ? value.startsWith(content.slice(0, -2)) : matchesGlob(content, value);
}

/** With `widely` (deny and ask rules), a host covers its subdomains too. */
function matchesHost(pattern: string, url: unknown, widely: boolean): boolean {
  if (typeof url !== "string" || !URL.canParse(url)) return widely;
  const host = new URL(url).hostname.toLowerCase().replace(/\.$/, "");
  const meant = pattern.toLowerCase();
  return matchesGlob(meant, host) || (widely && host.endsWith(`.${meant}`));
}
