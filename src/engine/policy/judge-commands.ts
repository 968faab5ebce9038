import { RISK_LEVELS, type Risk } from "../../domain/approvals/risk.ts";
import { parseDenyRule, parseRule, type RuleBehavior } from "../../domain/approvals/rule.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { PermissionMode, PermissionRequest } from "../../domain/permission.ts";
import type { JudgedCommand } from "../ports.ts";
import {
  allows,
  basesOf,
  isTheCommand,
  judge,
  mayMatchMention,
  uncheckedBy,
  type Rules,
  type Verdict,
} from "./rules.ts";

/**
 * Judges commands that the server itself is to run for a session. Claude Code is not asked, so its settings files count for
 * nothing: neither to allow nor to deny.
 */

interface Commands {
  readonly commands: readonly { readonly command: string; readonly judged: JudgedCommand }[];
  /** Rules of the operator. */
  readonly rules: Rules;
  readonly own: Pick<SessionOptions, "allowedTools" | "disallowedTools">;
  /** Mode in force; `bypassPermissions` only where the policy of the turn allows it. */
  readonly mode: PermissionMode;
  /** Folder of the session, the base of paths in rules. */
  readonly cwd: string;
  /** Returns the rule of a remembered answer that allows a request; with `exactly`, only a rule for just this command. */
  readonly remembered?: ((request: PermissionRequest, exactly: boolean) => string | undefined) | undefined;
}

type CommandVerdict =
  /** `rule` is absent if the permission mode allows the command. */
  | { readonly behavior: "allow"; readonly rule?: string }
  /** `rule` is absent if no rule decides, `unclear` as in `Verdict`. */
  | { readonly behavior: "ask"; readonly rule?: string; readonly unclear?: string }
  /** `message`: reason in sentences. `rule` is absent if the mode or a protected path forbids the command. */
  | { readonly behavior: "deny"; readonly message: string; readonly rule?: string };

/** Verdict on all commands. `risk`: the greatest of any command, with the reasons of all. */
export type CommandsVerdict = CommandVerdict & { readonly risk: Risk };

/** Returns the strictest verdict on the commands: the first denial, else the first that needs an approver. */
export function judgeCommands(all: Commands): CommandsVerdict {
  const verdicts = all.commands.map(({ command, judged }) => judgeOne(command, judged, all));
  const strictest = STRICTNESS.map((behavior) => verdicts.find((each) => each.behavior === behavior));
  const verdict = strictest.find((each) => each !== undefined) ?? ASK;
  return { ...verdict, risk: greatestRisk(all.commands.map(({ judged }) => judged.risk)) };
}

const ASK: CommandVerdict = { behavior: "ask" };
const STRICTNESS = ["deny", "ask", "allow"] as const satisfies readonly RuleBehavior[];

function greatestRisk(risks: readonly (Risk | undefined)[]): Risk {
  const levels = risks.map((risk) => risk?.level ?? "all");
  const level = RISK_LEVELS.findLast((each) => levels.includes(each)) ?? "all";
  return { level, why: [...new Set(risks.flatMap((risk) => risk?.why ?? []))] };
}

function judgeOne(command: string, { mentions = [], ...facts }: JudgedCommand, all: Commands): CommandVerdict {
  if (facts.refused !== undefined) return { behavior: "deny", message: facts.refused };
  const request: PermissionRequest = { ...BASH_REQUEST, input: { command }, ...facts };
  const { cwd, mode, remembered, rules } = all;
  const own = ownRules(all.own);
  const denial = findDenial(request, { command, mentions }, all);
  if (denial) return denial;
  const merged = { ...rules, allow: [...rules.allow, ...own.allow], deny: [...rules.deny, ...own.deny] };
  const verdict = judgeWithFiles(request, { rules: merged, mentions, cwd });
  if (verdict?.behavior === "allow") return { behavior: "allow", rule: verdict.rule };
  // An answer for exactly this command outweighs a rule that the command cannot be checked against.
  const isOpen = verdict === undefined || verdict.unclear !== undefined;
  const rule = isOpen ? remembered?.(request, verdict !== undefined) : undefined;
  if (rule !== undefined) return { behavior: "allow", rule };
  return verdict && !UNASKED.has(mode) ? { ...verdict, behavior: "ask" } : byMode(command, mode);
}

interface Judging {
  readonly rules: Rules;
  readonly mentions: readonly string[];
  readonly cwd: string;
}

/** Returns the verdict of `judge`, but asks about a command that uses, or may hide, files of deny and ask rules. */
function judgeWithFiles(request: PermissionRequest, { cwd, mentions, rules }: Judging): Verdict | undefined {
  const verdict = judge(request, rules, cwd);
  if (verdict?.behavior === "ask") return verdict;
  const bases = basesOf(request, rules, cwd);
  const met = rules.ask.find((rule) => mayMatchMention(rule, request.toolName, mentions, bases));
  if (met) return { behavior: "ask", rule: met.text };
  const unchecked = uncheckedBy([...rules.deny, ...rules.ask], request);
  if (!unchecked || rules.allow.some((rule) => allows(rule, request, bases) && isTheCommand(rule, request)))
    return verdict;
  return { behavior: "ask", rule: unchecked.rule, unclear: unchecked.why };
}

const BASH_REQUEST = { requestId: "", kind: "permission", toolName: "Bash", toolUseId: "" } as const;

/** Returns the denial by a rule for commands, or by a rule for files that the command mentions. */
function findDenial(
  request: PermissionRequest,
  { command, mentions }: { readonly command: string; readonly mentions: readonly string[] },
  { cwd, own, rules }: Commands,
): CommandVerdict | undefined {
  const bases = basesOf(request, rules, cwd);
  const shown = shownCommand(command);
  const sources = [
    ["A rule of this server's operator", rules.deny],
    ["A rule of the session (disallowedTools)", ownRules(own).deny],
  ] as const;
  for (const [whose, deny] of sources) {
    const verdict = judge(request, { ...rules, allow: [], ask: [], deny }, cwd);
    const met = deny.find((each) => mayMatchMention(each, request.toolName, mentions, bases))?.text;
    const rule = verdict?.behavior === "deny" ? verdict.rule : met;
    if (rule !== undefined) return { behavior: "deny", rule, message: `${whose} denies ${shown}: ${rule}.` };
  }
  return undefined;
}

function ownRules({ allowedTools = [], disallowedTools = [] }: Commands["own"]): Pick<Rules, "allow" | "deny"> {
  const allow = allowedTools.flatMap((text) => {
    const parsed = parseRule(text, "allow");
    return parsed.ok ? [parsed.rule] : [];
  });
  return { allow, deny: disallowedTools.map(parseDenyRule) };
}

/** Modes without requests: only a rule allows a command. */
const UNASKED: ReadonlySet<PermissionMode> = new Set(["dontAsk", "plan"]);

/** Returns the verdict on a command that no rule decides. */
function byMode(command: string, mode: PermissionMode): CommandVerdict {
  if (mode === "bypassPermissions") return { behavior: "allow" };
  if (!UNASKED.has(mode)) return ASK;
  const message = `In permissionMode ${mode} only a rule allows a command, and none allows ${shownCommand(command)}. Add one to allowedTools, or change the mode.`;
  return { behavior: "deny", message };
}

/** Maximum characters of a command in a reason. */
const SHOWN_CHARS = 200;

function shownCommand(command: string): string {
  return command.length > SHOWN_CHARS ? `${command.slice(0, SHOWN_CHARS)}...` : command;
}
