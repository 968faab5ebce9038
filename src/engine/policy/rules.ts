import { CAN_RUN } from "../../domain/approvals/risk.ts";
import { namedBy, type Rule, type RuleBehavior } from "../../domain/approvals/rule.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import { allowsCommand, fitsGlob, isExactly, judgeCommand, speaksOfCommand } from "../../security/shell/rules.ts";
import { whyUnread } from "../../security/shell/unread.ts";
import { matchesPath, type Bases } from "./rule-path.ts";

/**
 * What the rules say of a request: deny beats ask, ask beats allow. An allow rule holds only where all of the request is
 * what it names, a rule that denies or asks where any of it is.
 */

export interface Rules extends Readonly<Record<RuleBehavior, readonly Rule[]>> {
  readonly home: string;
}

export interface Verdict {
  readonly behavior: RuleBehavior;
  /** The rule's text. */
  readonly rule: string;
  /** The rule may not be meant: why it cannot be told what the command runs. */
  readonly unclear?: string;
}

/** Undefined where no rule says anything. */
export function judge(ask: PermissionRequest, rules: Rules, cwd: string): Verdict | undefined {
  const bases = basesOf(ask, rules, cwd);
  for (const behavior of ["deny", "ask"] as const) {
    const rule = rules[behavior].find((each) => speaksOf(each, ask, bases));
    if (rule) return { behavior, rule: rule.text };
  }
  const unclear = unclearBy([...rules.deny, ...rules.ask], ask);
  const allowing = rules.allow.find((each) => allows(each, ask, bases) && (!unclear || isTheCommand(each, ask)));
  if (allowing) return { behavior: "allow", rule: allowing.text };
  return unclear && { behavior: "ask", rule: unclear.rule, unclear: unclear.why };
}

/** A rule that a request cannot be checked against, and why, in words. */
interface Unchecked {
  readonly rule: string;
  readonly why: string;
}

/** The first rule that may match a shell command whose text does not show what it runs, or which files it means. */
export function uncheckedBy(denying: readonly Rule[], ask: PermissionRequest): Unchecked | undefined {
  const { input, toolName } = ask;
  const unread = typeof input["command"] === "string" ? whyUnread(input["command"]) : undefined;
  const ofFiles = unread === undefined ? undefined : denying.find((rule) => mayBeMentioned(rule, toolName));
  return (
    unclearBy(denying, ask) ?? (ofFiles && { rule: ofFiles.text, why: `${unread ?? ""} hides which files it means` })
  );
}

/** A deny or ask rule that may match a command that cannot be parsed: an approver is asked, unless a rule allows exactly this command. */
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

/** Whether the rule allows just this command, letter by letter. */
export function isTheCommand({ content }: Rule, { input }: PermissionRequest): boolean {
  const { command } = input;
  return content !== undefined && typeof command === "string" && isExactly(content, command);
}

export function basesOf({ cwd: real }: PermissionRequest, { home }: Pick<Rules, "home">, cwd: string): Bases {
  return { cwd: real === undefined ? [cwd] : [cwd, real], home };
}

/** No rule allows a question, nor a change of a file that runs commands by itself (`CAN_RUN`). */
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
  return saysContent(content, ask, false);
}

function speaksOf(rule: Rule, ask: PermissionRequest, bases: Bases): boolean {
  if (!namesTool(rule.toolName, ask.toolName) && rule.toolName !== shellOf(ask.toolName)) return false;
  const { content } = rule;
  if (content === undefined) return true;
  const { input, paths, toolName } = ask;
  const shell = shellOf(toolName);
  if (shell !== undefined) {
    const { command } = input;
    return typeof command !== "string" || speaksOfCommand(content, command, shell === "Bash");
  }
  // What cannot be told may be what is meant.
  if (isForFiles(rule)) return paths?.some((path) => matchesPath(content, path, bases, true)) ?? true;
  return saysContent(content, ask, true);
}

/** Tells whether a rule for files matches one of the paths that a shell command mentions. */
export function speaksOfMention(rule: Rule, toolName: string, mentions: readonly string[], bases: Bases): boolean {
  const { content = "" } = rule;
  return mayBeMentioned(rule, toolName) && mentions.some((path) => matchesPath(content, path, bases, true));
}

/** Tells whether the rule is for files that a command of the tool could use. */
function mayBeMentioned(rule: Rule, toolName: string): boolean {
  return rule.content !== undefined && isForFiles(rule) && shellOf(toolName) !== undefined;
}

/** Whose rules hold for the commands of the tool: what Monitor watches is run by Bash. */
function shellOf(toolName: string): "Bash" | "PowerShell" | undefined {
  if (toolName === "Bash" || toolName === "Monitor") return "Bash";
  return toolName === "PowerShell" ? "PowerShell" : undefined;
}

function isForFiles({ toolName }: Rule): boolean {
  return toolName === "Edit" || toolName === "Read";
}

function namesTool(named: string, toolName: string): boolean {
  if (namedBy(named).includes(toolName)) return true;
  if (!named.startsWith("mcp__")) return false;
  // mcp__server is all of its tools.
  return named.includes("*") ? fitsGlob(named, toolName) : toolName.startsWith(`${named}__`) && isServer(named);
}

function isServer(named: string): boolean {
  return !named.slice("mcp__".length).includes("__");
}

/** What stands in the brackets of a rule for anything but commands and files. */
function saysContent(content: string, { input, toolName }: PermissionRequest, widely: boolean): boolean {
  switch (toolName) {
    case "WebFetch":
      return isHost(content.slice("domain:".length), input["url"], widely);
    case "Agent":
    case "Task":
      return isText(input["subagent_type"], content);
    case "Skill":
      return [input["skill"], input["command"]].some((name) => isText(name, content));
    default:
      return false;
  }
}

function isText(value: unknown, content: string): boolean {
  if (typeof value !== "string") return false;
  return content.endsWith(":*") ? value.startsWith(content.slice(0, -2)) : fitsGlob(content, value);
}

/** Who denies a host means what is below it too. */
function isHost(pattern: string, url: unknown, widely: boolean): boolean {
  if (typeof url !== "string" || !URL.canParse(url)) return widely;
  const host = new URL(url).hostname.toLowerCase().replace(/\.$/, "");
  const meant = pattern.toLowerCase();
  return fitsGlob(meant, host) || (widely && host.endsWith(`.${meant}`));
}
