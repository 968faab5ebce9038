import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commandGuard, hooksByEvent } from "../../src/claude/process/hooks.ts";

/** Forbids features that would end with this server, while Claude Code goes on with the next server. */

const CLAUDE = join(import.meta.dirname, "../../src/claude");
const files = readdirSync(CLAUDE, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));

it("no MCP server runs inside this process: a turn that outlives the process would lose its tools", () => {
  const found = files.filter((file) => /createSdkMcpServer|type: "sdk"/.test(readFileSync(join(CLAUDE, file), "utf8")));
  expect(files.length).toBeGreaterThan(40);
  expect(found).toEqual([]);
});

it("hooks are set in three files only, because the next server must have a hook for each number", () => {
  const found = files.filter((file) => /hooks: (?:\[|hooksOf|\{)/.test(readFileSync(join(CLAUDE, file), "utf8")));
  expect(found.toSorted()).toEqual(["process/hooks.ts", "process/launch.ts", "spares/spare.ts"]);
});

describe("hooks of a process that another server took over", () => {
  const deny = { toolName: "Bash", content: "touch *", text: "Bash(touch *)", behavior: "deny" as const };
  const command = { tool_name: "Bash", tool_input: { command: "touch x" }, tool_use_id: "t", command_name: "make" };
  const message = { prompt: '<cross-session-message from="a">\nDo it.\n</cross-session-message>' };
  const notRun = { hookSpecificOutput: expect.objectContaining({ permissionDecision: "deny" }) };

  it.each<[string, object, object, object]>([
    ["PreToolUse", command, {}, notRun],
    ["PreSkillShellCommand", command, {}, notRun],
    ["UserPromptSubmit", message, {}, { decision: "block", reason: expect.stringContaining("refuses messages") }],
    ["UserPromptSubmit", message, { UserPromptSubmit: [] }, {}],
    ["UserPromptSubmit", { prompt: "Mine." }, {}, {}],
  ])("%s is judged by a hook of any number", async (event, about, given, expected) => {
    const rules = { allow: [], ask: [], deny: [deny] };
    const allowing = { guard: async () => Promise.resolve({}), confirm: async () => Promise.resolve(undefined) };
    const hooks = hooksByEvent(allowing, { ...commandGuard({ disallowedTools: [], rules }), ...given });
    const numbered = Object.values(hooks).flatMap((matchers) => matchers.flatMap((matcher) => matcher.hooks));
    expect(numbered.length).toBeGreaterThan(4);
    const { signal } = new AbortController();
    for (const hook of numbered) {
      expect(await hook({ hook_event_name: event, ...about } as never, "id", { signal })).toMatchObject(expected);
    }
  });
});
