import { z } from "zod";
import { Bound } from "./approvals/risk.ts";
import { JsonObject } from "./json.ts";
import { AgentDefinition } from "./options/agents.ts";
import { McpServer } from "./options/mcp-servers.ts";
import { Sandbox } from "./options/sandbox.ts";
import { PermissionMode } from "./permission.ts";
import { Labels } from "./place.ts";
import { Verify, VerifyOption } from "./verification.ts";
import { OnLimit, Priority } from "./waiting.ts";

/**
 * Schema of the options of a session. A new option compiles only after `options/traits.ts` states its effects, and
 * `claude/sdk-options.ts` passes it to Claude Code or `engine/policy/policy.ts` uses it to bound the session.
 */

/** Kinds of settings files. Claude Code merges the files, later kinds over earlier ones. */
export const SettingSource = z.enum(["user", "project", "local"]);
export type SettingSource = z.infer<typeof SettingSource>;

const names = z.array(z.string().min(1)).max(500);

const display = z.enum(["summarized", "omitted"]).exactOptional();

const Thinking = z.union([
  z.strictObject({ type: z.literal("adaptive"), display }),
  z.strictObject({ type: z.literal("enabled"), budgetTokens: z.number().int().min(1024).max(1_000_000), display }),
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

/** Options most callers never need. Fields of `advanced` on the wire. */
export const AdvancedOptions = z.strictObject({
  tools: z
    .union([names, z.strictObject({ type: z.literal("preset"), preset: z.literal("claude_code") })])
    .exactOptional()
    .describe("tools that are available at all; [] is none. Default: all of Claude Code's"),
  agents: z.record(z.string().min(1), AgentDefinition).exactOptional().describe("subagents by name. Default: none"),
  agent: z.string().min(1).exactOptional().describe("subagent that runs the main thread. Default: none"),
  additionalDirectories: z
    .array(z.string().min(1))
    .max(100)
    .exactOptional()
    .describe("further folders that Claude Code may work in. Default: []"),
  effort: z.enum(["low", "medium", "high", "xhigh", "max"]).exactOptional().describe("Default: Claude Code's"),
  thinking: Thinking.exactOptional().describe("Default: Claude Code's"),
  fallbackModel: z
    .string()
    .min(1)
    .exactOptional()
    .describe("model used while the main model is overloaded. Default: none"),
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
    .describe('settings files to read. Default: ["user","project","local"]'),
  env: z
    .record(z.string().min(1), z.string())
    .exactOptional()
    .describe("environment variables added for Claude Code. Default: {}"),
  pathToClaudeCodeExecutable: z.string().min(1).exactOptional().describe("Default: the binary that comes with the SDK"),
  persistSession: z
    .boolean()
    .exactOptional()
    .describe("false: keep nothing on disk; the session ends with its process. Default: true"),
  includePartialMessages: z
    .boolean()
    .exactOptional()
    .describe("return the text being written as `partial` of a poll. Default: false"),
  maxBudgetUsd: z
    .number()
    .positive()
    .max(1_000_000)
    .exactOptional()
    .describe("maximum cost of a prompt in USD. Default: no limit"),
  timeout: z
    .number()
    .int()
    .min(1000)
    .max(86_400_000)
    .exactOptional()
    .describe("maximum ms for a prompt, not counting time spent waiting for approvals. Default: no limit"),
  onLost: z
    .enum(["report", "resume"])
    .exactOptional()
    .describe("report a turn lost to a crash, or resume it once. Default: report"),
  onLimit: OnLimit.exactOptional().describe(
    "at a limit of the plan or the operator: end the turn, or wait and go on. Default: the operator's (report)",
  ),
  priority: Priority.exactOptional().describe("background: yield to all other sessions. Default: normal"),
  node: z
    .string()
    .min(1)
    .max(100)
    .exactOptional()
    .describe("node of the store to run on. Default: the node that is called"),
  labels: Labels.exactOptional().describe("labels of the nodes that may run it. Default: none"),
  profile: z.string().min(1).max(100).exactOptional().describe("profile of the operator to start with. Default: none"),
  sessionInitTimeoutMs: z
    .number()
    .int()
    .min(100)
    .max(600_000)
    .exactOptional()
    .describe("maximum ms for Claude Code to start. Default: 60000"),
  // Claude Code drops any other value. `ANTHROPIC_BETAS` in `env` accepts every beta known to the API.
  betas: z
    .array(z.enum(["context-1m-2025-08-07"]))
    .max(10)
    .exactOptional()
    .describe("beta features of the API. Default: []"),
  sandbox: Sandbox.exactOptional().describe("sandbox for shell commands. Default: from the settings files"),
  enableFileCheckpointing: z
    .boolean()
    .exactOptional()
    .describe("keep a checkpoint of files at each prompt, for rewind. Default: false"),
  debug: z.boolean().exactOptional().describe("write Claude Code's debug log. Default: false"),
  debugFile: z
    .string()
    .min(1)
    .exactOptional()
    .describe("path of the debug log; implies debug. Default: a file in Claude Code's debug folder"),
  skills: z
    .union([z.literal("all"), names])
    .exactOptional()
    .describe("skills that are available and run without asking. Default: all"),
  title: z.string().min(1).max(500).exactOptional().describe("title of the session. Default: generated by Claude Code"),
  taskBudget: z
    .strictObject({ total: z.number().int().min(1).max(1_000_000_000) })
    .exactOptional()
    .describe("token budget that the model is told about. Default: none"),
  forwardSubagentText: z
    .boolean()
    .exactOptional()
    .describe("log the text of subagents, not only their tool calls. Default: false"),
  verbatimPrompts: z
    .boolean()
    .exactOptional()
    .describe("pass prompts on unchanged: no @file, no slash commands. Default: false"),
  permissionPrompts: z
    .enum(["host", "none"])
    .exactOptional()
    .describe("none: deny every permission request at once. Default: host"),
  callerApproves: Bound.exactOptional().describe(
    "maximum risk that callers may approve in the session, at most the operator's limit. Default: the operator's limit",
  ),
  planModeInstructions: z
    .string()
    .min(1)
    .exactOptional()
    .describe("replaces the workflow of plan mode. Default: Claude Code's"),
  promptSuggestions: z.boolean().exactOptional().describe("log a suggestion for the next prompt. Default: false"),
  agentProgressSummaries: z
    .boolean()
    .exactOptional()
    .describe("log a progress summary of subagents every 30 s. Default: false"),
  includeHookEvents: z.boolean().exactOptional().describe("log the results of hooks. Default: false"),
  verify: VerifyOption.exactOptional().describe(
    "commands that the server runs when a turn is done. If one fails, Claude Code repairs, at most attempts times. Default: the operator's for the folder",
  ),
});
export type AdvancedOptions = z.infer<typeof AdvancedOptions>;

/** Schemas for every parameter with the path of a folder or the name of a model. */
export const Folder = z.string().min(1).max(4_096);
export const ModelName = z.string().min(1).max(200);

export const SessionOptions = z.strictObject({
  cwd: Folder.describe("Default: the server's"),
  allowedTools: names.exactOptional().describe("run without asking, e.g. WebFetch, Bash(git *). Default: []"),
  disallowedTools: names.exactOptional().describe("Default: []"),
  maxTurns: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .exactOptional()
    .describe("model round trips per prompt. Default: no limit"),
  model: ModelName.exactOptional().describe("Default: Claude Code's"),
  systemPrompt: SystemPrompt.exactOptional().describe("a string replaces Claude Code's. Default: none"),
  permissionMode: PermissionMode.exactOptional().describe("Default: default (asks, except for reads, Agent, Skill)"),
  permissionRequestTimeoutMs: z
    .number()
    .int()
    .min(1000)
    .max(86_400_000)
    .exactOptional()
    .describe("Default: 60000 once seen"),
  ...AdvancedOptions.shape,
  /** A session may also have the operator's default, which callers cannot write. */
  verify: z.union([VerifyOption, Verify]).exactOptional(),
});
export type SessionOptions = z.infer<typeof SessionOptions>;
