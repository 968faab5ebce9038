import type { HookCallback, HookCallbackMatcher } from "@anthropic-ai/claude-agent-sdk";
import type { Confirm } from "./open-requests.ts";

/**
 * Commands in the text of a skill or slash command (`!` lines). Claude Code runs them before the model sees the text, by this hook
 * alone: neither the hooks of a tool nor a request for permission sees them. They are judged like the same command of the model.
 */

interface Verdict {
  readonly decision: string;
  readonly reason: string;
}

/** `checks` are the hooks before each use of a tool. */
export function skillGuard(checks: readonly HookCallbackMatcher[], confirm: Confirm): HookCallback {
  return async (input, id, options) => {
    if (input.hook_event_name !== "PreSkillShellCommand") return {};
    const { command_name: name, tool_input: command, tool_name: toolName, tool_use_id: toolUseId } = input;
    const asTool = { ...input, hook_event_name: "PreToolUse" as const };
    const check = async (hook: HookCallback) => verdictOf(await hook(asTool, id, options));
    try {
      const verdicts = await Promise.all(checks.flatMap(({ hooks }) => hooks.map(check)));
      const found = verdicts.find((each) => each?.decision === "deny") ?? verdicts.find((each) => each !== undefined);
      if (!found) return {};
      const reason = `Command of /${name}. ${found.reason}`;
      if (found.decision !== "ask") return notRun(reason);
      const denied = await confirm({ id: id ?? toolUseId, toolName, input: { ...command }, reason }, options.signal);
      return denied === undefined ? {} : notRun(denied);
    } catch {
      return notRun("It cannot be checked.");
    }
  };
}

function verdictOf(answer: Awaited<ReturnType<HookCallback>>): Verdict | undefined {
  const output = "hookSpecificOutput" in answer ? answer.hookSpecificOutput : undefined;
  if (output?.hookEventName !== "PreToolUse" || output.permissionDecision === undefined) return undefined;
  return { decision: output.permissionDecision, reason: output.permissionDecisionReason ?? "" };
}

function notRun(permissionDecisionReason: string) {
  const hookEventName = "PreSkillShellCommand" as const;
  return { hookSpecificOutput: { hookEventName, permissionDecision: "deny" as const, permissionDecisionReason } };
}
