import { z } from "zod";
import { PermissionMode } from "../permission.ts";
import { McpServer } from "./mcp-servers.ts";

const text = z.string().min(1);
const names = z.array(text).max(500);

/** Schema with all fields of the SDK's `AgentDefinition`; a test compares both. */
export const AgentDefinition = z.strictObject({
  description: text.describe("when to use the agent"),
  prompt: text.describe("system prompt"),
  tools: names.exactOptional().describe("tools that it can use. Default: all of the session's"),
  disallowedTools: names.exactOptional().describe("tools that it cannot use. Default: []"),
  model: text.exactOptional().describe("Default: Claude Code's for subagents"),
  mcpServers: z
    .array(z.union([text, z.record(text, McpServer)]))
    .max(100)
    .exactOptional()
    .describe("inline MCP servers, or names of servers in Claude Code's configuration. Default: the session's"),
  skills: names.exactOptional().describe("skills that it starts with. Default: none"),
  initialPrompt: text
    .exactOptional()
    .describe("text prepended to the first prompt when the agent runs the main thread. Default: none"),
  maxTurns: z.number().int().min(1).max(100_000).exactOptional().describe("model round trips. Default: no limit"),
  autoCompactWindow: z
    .number()
    .int()
    .min(100_000)
    .exactOptional()
    .describe("context size in tokens at which it compacts. Default: inherited"),
  background: z.boolean().exactOptional().describe("always run in the background. Default: Claude Code's choice"),
  omitClaudeMd: z.boolean().exactOptional().describe("run without CLAUDE.md files. Default: false"),
  memory: z
    .enum(["user", "project", "local"])
    .exactOptional()
    .describe("scope of the memory files that it keeps. Default: none"),
  effort: z
    .union([z.enum(["low", "medium", "high", "xhigh", "max"]), z.number().int().min(1)])
    .exactOptional()
    .describe("Claude Code 2.1 accepts a number but does not use it. Default: the session's"),
  permissionMode: PermissionMode.exactOptional().describe(
    "cannot be stricter than the session's. Default: the session's",
  ),
  observer: text
    .exactOptional()
    .describe(
      "agents that observe it, comma-separated; requires CLAUDE_CODE_EXPERIMENTAL_OBSERVER_AGENTS=1 in env. Default: none",
    ),
  observerMessage: text.exactOptional().describe("text added to the observers' prompts. Default: none"),
  criticalSystemReminder_EXPERIMENTAL: text
    .exactOptional()
    .describe("passed on; has no effect in Claude Code 2.1. Default: none"),
});
export type AgentDefinition = z.infer<typeof AgentDefinition>;

/** Lists the `mcpServers` fields in which subagents define servers inline. A server given by name is the operator's. */
export function inlineServerFields(agents: Readonly<Record<string, AgentDefinition>> = {}): string[] {
  return Object.entries(agents)
    .filter(([, { mcpServers = [] }]) => mcpServers.some((server) => typeof server !== "string"))
    .map(([name]) => `agents.${name.slice(0, 60)}.mcpServers`);
}
