import { z } from "zod";
import { JsonObject } from "./json.ts";
import { PermissionMode } from "./permission.ts";

/**
 * The one schema of what a session can be started with. Tools pick from it, claude/options.ts maps every key of it to
 * Claude Code (a test holds the two together). A new option of the SDK is added here and there, nowhere else.
 */

/** Claude Code merges settings of these kinds, later ones over earlier ones. */
export const SettingSource = z.enum(["user", "project", "local"]);
export type SettingSource = z.infer<typeof SettingSource>;

const names = z.array(z.string().min(1)).max(500);

const Thinking = z.union([
  z.strictObject({ type: z.literal("adaptive") }),
  z.strictObject({ type: z.literal("enabled"), budgetTokens: z.number().int().min(1024).max(1_000_000) }),
  z.strictObject({ type: z.literal("disabled") }),
]);

const SystemPrompt = z.union([
  z.string().min(1),
  z.strictObject({
    type: z.literal("preset"),
    preset: z.literal("claude_code"),
    append: z.string().min(1).exactOptional(),
  }),
]);

const AgentDefinition = z.strictObject({
  description: z.string().min(1),
  prompt: z.string().min(1),
  tools: names.exactOptional(),
  disallowedTools: names.exactOptional(),
  model: z.string().min(1).exactOptional(),
  skills: names.exactOptional(),
  maxTurns: z.number().int().min(1).max(100_000).exactOptional(),
  background: z.boolean().exactOptional(),
  permissionMode: PermissionMode.exactOptional(),
});

const McpServer = z.union([
  z.strictObject({
    type: z.literal("stdio").exactOptional(),
    command: z.string().min(1),
    args: z.array(z.string()).exactOptional(),
    env: z.record(z.string(), z.string()).exactOptional(),
  }),
  z.strictObject({
    type: z.enum(["http", "sse"]),
    url: z.url(),
    headers: z.record(z.string(), z.string()).exactOptional(),
  }),
]);

/** Options most callers never need; on the wire they travel in `advanced`. */
export const AdvancedOptions = z.strictObject({
  tools: z
    .union([names, z.strictObject({ type: z.literal("preset"), preset: z.literal("claude_code") })])
    .exactOptional()
    .describe("the tools Claude Code has at all; [] is none. Default: all of Claude Code's"),
  agents: z.record(z.string().min(1), AgentDefinition).exactOptional().describe("subagents by name. Default: none"),
  agent: z.string().min(1).exactOptional().describe("run the main thread as this agent. Default: none"),
  additionalDirectories: z.array(z.string().min(1)).max(100).exactOptional().describe("further folders. Default: []"),
  effort: z.enum(["low", "medium", "high", "xhigh", "max"]).exactOptional().describe("Default: Claude Code's"),
  thinking: Thinking.exactOptional().describe("Default: Claude Code's"),
  fallbackModel: z.string().min(1).exactOptional().describe("model used when the first is overloaded. Default: none"),
  mcpServers: z.record(z.string().min(1), McpServer).exactOptional().describe("MCP servers by name. Default: none"),
  strictMcpConfig: z.boolean().exactOptional().describe("use only the MCP servers given here. Default: false"),
  outputFormat: z
    .strictObject({ type: z.literal("json_schema"), schema: JsonObject })
    .exactOptional()
    .describe("JSON Schema of the structured output. Default: none"),
  settingSources: z
    .array(SettingSource)
    .max(3)
    .exactOptional()
    .describe('settings files that are read. Default: ["user","project","local"]'),
  env: z
    .record(z.string().min(1), z.string())
    .exactOptional()
    .describe("added to the environment of Claude Code. Default: {}"),
  pathToClaudeCodeExecutable: z.string().min(1).exactOptional().describe("Default: the binary that comes with the SDK"),
  maxBudgetUsd: z
    .number()
    .positive()
    .max(1_000_000)
    .exactOptional()
    .describe("USD that a prompt may cost. Default: no limit"),
  timeout: z
    .number()
    .int()
    .min(1000)
    .max(86_400_000)
    .exactOptional()
    .describe("ms a prompt may take, time spent waiting for decisions not counted. Default: no limit"),
  onLost: z
    .enum(["report", "resume"])
    .exactOptional()
    .describe("a turn lost to a crash is reported, or run on once. Default: report"),
  sessionInitTimeoutMs: z
    .number()
    .int()
    .min(100)
    .max(600_000)
    .exactOptional()
    .describe("ms Claude Code may take to start. Default: 10000"),
});
export type AdvancedOptions = z.infer<typeof AdvancedOptions>;

export const SessionOptions = z.strictObject({
  cwd: z.string().min(1).describe("working directory. Default: the server's"),
  allowedTools: names.exactOptional().describe('tools that run unasked, e.g. ["Read","Bash(git *)"]. Default: []'),
  disallowedTools: names.exactOptional().describe("tools that are never run, whatever is approved. Default: []"),
  maxTurns: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .exactOptional()
    .describe("model round trips allowed for a prompt. Default: no limit"),
  model: z.string().min(1).exactOptional().describe("Default: Claude Code's"),
  systemPrompt: SystemPrompt.exactOptional().describe("Default: Claude Code's own; a string replaces it"),
  permissionMode: PermissionMode.exactOptional().describe("Default: default (everything asks)"),
  permissionRequestTimeoutMs: z
    .number()
    .int()
    .min(1000)
    .max(86_400_000)
    .exactOptional()
    .describe("ms until an unanswered request is denied, from its creation. Default: 60000 from when you first see it"),
  ...AdvancedOptions.shape,
});
export type SessionOptions = z.infer<typeof SessionOptions>;
