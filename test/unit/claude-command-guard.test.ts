import { expect, it } from "vitest";
import { commandGuard } from "../../src/claude/process/hooks.ts";
import { parseRule, type Rule } from "../../src/domain/approvals/rule.ts";

function ruleOf(text: string): Rule {
  const parsed = parseRule(text, "deny");
  if (!parsed.ok) throw new Error(text);
  return parsed.rule;
}

/** Returns the decision of the hook for commands: `rm` is denied, `mv` asks, and only `echo "$(date)"` is allowed. */
async function decisionOf(tool_name: string, tool_input: object, permission_mode: string): Promise<unknown> {
  const allow = [ruleOf('Bash(echo "$(date)")')];
  const rules = { allow, ask: [ruleOf("Bash(mv *)")], deny: [ruleOf("Bash(rm *)")] };
  const hooks = commandGuard({ disallowedTools: [], rules });
  const input = { hook_event_name: "PreToolUse", tool_name, tool_input, permission_mode, tool_use_id: "t1" };
  const common = { session_id: "s", transcript_path: "", cwd: "/" };
  const hook = hooks?.PreToolUse?.[0]?.hooks[0];
  const answer = await hook?.({ ...common, ...input } as never, "t1", { signal: new AbortController().signal });
  const { hookSpecificOutput = {} } = answer as { hookSpecificOutput?: { permissionDecision?: string } };
  return hookSpecificOutput.permissionDecision;
}

it.each<[string, object, string, string | undefined]>([
  ["Bash", { command: "ls" }, "default", undefined],
  ["Bash", { command: "rm x" }, "default", "deny"],
  ["Bash", { command: "rm x" }, "bypassPermissions", "deny"],
  ["Bash", {}, "default", "deny"],
  ["Bash", { command: "mv x y" }, "default", "ask"],
  ["Bash", { command: "mv x y" }, "bypassPermissions", "ask"],
  ["Bash", { command: "mv x y" }, "dontAsk", "deny"],
  ["Bash", { command: "$(cat x) y" }, "dontAsk", "deny"],
  ["REPL", { code: "1" }, "dontAsk", "deny"],
  ["Bash", { command: "$(cat x) y" }, "default", "ask"],
  ["Bash", { command: "$(cat x) y" }, "bypassPermissions", "deny"],
  ["Bash", { command: 'echo "$(date)"' }, "bypassPermissions", undefined],
  ["Monitor", { command: "rm x" }, "default", "deny"],
  ["PowerShell", { command: "rm x" }, "default", undefined],
  ["REPL", { code: "1" }, "default", "ask"],
  ["REPL", { code: "1" }, "bypassPermissions", "deny"],
  ["Read", { file_path: "/x" }, "default", undefined],
])("if a rule covers commands, the hook answers %s %j in mode %s with %s", async (tool, input, mode, decision) => {
  expect(await decisionOf(tool, input, mode)).toBe(decision);
});

it("no hook is installed if no rule covers commands", () => {
  expect(commandGuard({ disallowedTools: ["Read"], rules: { allow: [], ask: [], deny: [] } })).toBeUndefined();
});
