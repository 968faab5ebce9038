import type { HookCallback, HookCallbackMatcher, HookJSONOutput } from "@anthropic-ai/claude-agent-sdk";
import type { Confirm } from "./open-requests.ts";

/**
 * Judges commands in the text of a skill or slash command (`!` lines) like commands of the model. Claude Code runs them before
 * the model sees the text and calls only this hook: neither tool hooks nor permission requests see such commands.
 */

interface Verdict {
  readonly decision: string;
  readonly reason: string;
}

/** `checks`: hooks before each tool use. */
export function skillGuard(checks: readonly HookCallbackMatcher[], confirm: Confirm): HookCallback {
  return async (input, id, options) => {
    if (input.hook_event_name !== "PreSkillShellCommand") return {};
    const { command_name: name, tool_input: command, tool_name: toolName, tool_use_id: toolUseId } = input;
    try {
      const asTool = { ...input, hook_event_name: "PreToolUse" as const };
      const found = verdictOf(await strictest(checks, asTool, id, options));
      if (!found) return {};
      const reason = `Command of /${name}. ${found.reason}`;
      if (found.decision !== "ask") return denyCommand(reason);
      const denied = await confirm({ id: id ?? toolUseId, toolName, input: { ...command }, reason }, options.signal);
      return denied === undefined ? {} : denyCommand(denied);
    } catch {
      return denyCommand("It cannot be checked.");
    }
  };
}

/** Combines all hooks before a tool use: a denial wins over a question. */
export async function strictest(
  checks: readonly HookCallbackMatcher[],
  ...about: Parameters<HookCallback>
): Promise<HookJSONOutput> {
  const answers = await Promise.all(checks.flatMap(({ hooks }) => hooks.map(async (hook) => hook(...about))));
  const denial = answers.find((each) => verdictOf(each)?.decision === "deny");
  return denial ?? answers.find((each) => verdictOf(each) !== undefined) ?? {};
}

function verdictOf(answer: HookJSONOutput): Verdict | undefined {
  const output = "hookSpecificOutput" in answer ? answer.hookSpecificOutput : undefined;
  if (output?.hookEventName !== "PreToolUse" || output.permissionDecision === undefined) return undefined;
  return { decision: output.permissionDecision, reason: output.permissionDecisionReason ?? "" };
}

function denyCommand(permissionDecisionReason: string) {
  const hookEventName = "PreSkillShellCommand" as const;
  return { hookSpecificOutput: { hookEventName, permissionDecision: "deny" as const, permissionDecisionReason } };
}
