import { describe, expect, it } from "vitest";
import { restrictions } from "../../src/claude/restrictions.ts";

describe("rules for the commands of a subagent", () => {
  it("are checked for every command, like the rules of the session", async () => {
    const agents = { helper: { description: "d", prompt: "p", disallowedTools: ["Bash(touch *)", "WebFetch"] } };
    const rules = { allow: [], ask: [], deny: [] };
    const settings = {
      rules,
      closed: [],
      ownCommands: () => [],
      mayNest: true,
      ownUrls: async () => Promise.resolve([]),
    };
    const given = { options: { cwd: "/p", agents }, environment: { HOME: "/home/ann" }, sandboxed: undefined };
    const { hooks } = await restrictions(given, settings as never);
    const hook = { hook_event_name: "PreToolUse", tool_name: "Bash", tool_input: { command: "env touch a" } };
    const answer = await hooks?.PreToolUse?.[0]?.hooks[0]?.(hook as never, "t", {
      signal: new AbortController().signal,
    });
    expect(answer).toMatchObject({ hookSpecificOutput: { permissionDecision: "deny" } });
  });
});
