import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { OPEN_POLICY } from "../kit/sessions/open-gate.ts";
import { buildRestrictions } from "../../src/claude/restrictions.ts";

describe("rules for the commands of a subagent", () => {
  it("rules of a subagent are checked for every command, like the rules of the session", async () => {
    const agents = { helper: { description: "d", prompt: "p", disallowedTools: ["Bash(touch *)", "WebFetch"] } };
    const settings = {
      protection: { closed: () => [] },
      ownCommands: () => [],
      ownUrls: async () => Promise.resolve([]),
    };
    const given = {
      options: { cwd: "/p", agents },
      policy: { ...OPEN_POLICY, mayNest: true },
      environment: { HOME: "/home/ann" },
      sandboxed: undefined,
      canHold: true,
    };
    const { hooks } = await buildRestrictions(given, settings as never);
    const hook = { hook_event_name: "PreToolUse", tool_name: "Bash", tool_input: { command: "env touch a" } };
    const answer = await hooks?.PreToolUse?.[0]?.hooks[0]?.(hook as never, "t", {
      signal: new AbortController().signal,
    });
    expect(answer).toMatchObject({ hookSpecificOutput: { permissionDecision: "deny" } });
  });
});

it("a session gets no server that starts sessions, by name, by name in the plugin, or by command", async () => {
  const Marketplace = z.object({ plugins: z.tuple([z.object({ name: z.string() })]) });
  const { plugins } = Marketplace.parse(JSON.parse(readFileSync(".claude-plugin/marketplace.json", "utf8")));
  const settings = {
    protection: { closed: () => [] },
    ownCommands: () => [["npx", "-y", "claude-agents-mcp"]],
    ownUrls: async () => Promise.resolve([]),
  };
  const given = {
    options: { cwd: "/p" },
    policy: { ...OPEN_POLICY, mayNest: false },
    environment: { HOME: "/home/ann" },
    sandboxed: undefined,
    canHold: true,
  };
  const found = await buildRestrictions(given, settings as never);
  expect(found.settings).toMatchObject({
    deniedMcpServers: [
      { serverName: "claude-agents-mcp" },
      { serverName: `plugin:${plugins[0].name}:claude-agents-mcp` },
      { serverCommand: ["npx", "-y", "claude-agents-mcp"] },
    ],
  });
});
