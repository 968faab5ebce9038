import type { HookCallbackMatcher, HookInput, HookJSONOutput, Options, Settings } from "@anthropic-ai/claude-agent-sdk";
import { readRule, type Rule } from "../../domain/approvals/rule.ts";
import { isExactly, judgeCommand, type CommandRules } from "../../security/shell/rules.ts";

/**
 * Rules for commands as they hold for what Claude Code does not ask about: it asks this hook before every tool, in every
 * permission mode and in subagents. Without such rules there is no hook.
 */

export interface Guarded {
  /** Of the operator. */
  readonly rules: { readonly allow: readonly Rule[]; readonly ask: readonly Rule[]; readonly deny: readonly Rule[] };
  /** Of the session: they deny. */
  readonly disallowedTools: readonly string[];
}

/** All that runs commands. What is watched is run by Bash. */
const TOOLS: ReadonlyMap<string, string> = new Map([
  ["Bash", "Bash"],
  ["Monitor", "Bash"],
  ["PowerShell", "PowerShell"],
  ["REPL", "REPL"],
]);

export function commandGuard({ disallowedTools, rules }: Guarded): { hooks?: Options["hooks"]; settings?: Settings } {
  const denied = disallowedTools.flatMap((text) => readRule(text) ?? []);
  const all = { allow: rules.allow, ask: rules.ask, deny: [...rules.deny, ...denied] };
  if (![...all.ask, ...all.deny].some(isForCommands)) return {};
  const guard: HookCallbackMatcher = {
    matcher: [...TOOLS.keys()].join("|"),
    hooks: [async (input) => Promise.resolve(answer(all, input))],
  };
  // What stands in a skill as a command is run without any hook.
  return { hooks: { PreToolUse: [guard] }, settings: { disableSkillShellExecution: true } };
}

function isForCommands({ content, toolName }: Pick<Rule, "content" | "toolName">): boolean {
  return content !== undefined && (toolName === "Bash" || toolName === "PowerShell");
}

type Named = Pick<Rule, "content" | "toolName">;

interface All {
  readonly allow: readonly Named[];
  readonly ask: readonly Named[];
  readonly deny: readonly Named[];
}

const ADVICE =
  "Run it as one plain command: a program name and literal arguments, without code for another program to run. " +
  "If that is not possible, do without it, or tell the user.";

function answer(all: All, input: HookInput): HookJSONOutput {
  if (input.hook_event_name !== "PreToolUse") return {};
  const tool = TOOLS.get(input.tool_name);
  if (tool === undefined) return {};
  const isUnasked = input.permission_mode === "bypassPermissions";
  if (tool === "REPL")
    return decide(
      isUnasked ? "deny" : "ask",
      "Code of the REPL cannot be checked against this server's command rules.",
    );
  const command = commandOf(input.tool_input);
  if (command === undefined) return decide("deny", "The command is missing.");
  const rules = contentsFor(all, tool);
  const verdict = judgeCommand(rules, command, tool === "Bash");
  if (!verdict) return {};
  if (verdict.behavior !== "unreadable")
    return decide(verdict.behavior, `The command rule ${tool}(${verdict.content}) decides (${verdict.behavior}).`);
  if (rules.allow.some((content) => isExactly(content, command))) return {};
  const why = `This command cannot be checked against the command rules: ${verdict.problem}.`;
  return isUnasked ? decide("deny", `${why} ${ADVICE}`) : decide("ask", why);
}

function contentsFor({ allow, ask, deny }: All, tool: string): Required<CommandRules> {
  const of = (rules: readonly Named[]) =>
    rules.flatMap(({ content, toolName }) => (toolName === tool && content !== undefined ? [content] : []));
  return { allow: of(allow), ask: of(ask), deny: of(deny) };
}

function commandOf(input: unknown): string | undefined {
  if (typeof input !== "object" || input === null || !("command" in input)) return undefined;
  return typeof input.command === "string" ? input.command : undefined;
}

function decide(permissionDecision: "ask" | "deny", permissionDecisionReason: string): HookJSONOutput {
  return { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason } };
}
