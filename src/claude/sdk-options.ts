import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { invalidArgument } from "../domain/error.ts";
import { SessionOptions } from "../domain/options.ts";
import { type ClaudeOptions, traitsOf } from "../domain/options/traits.ts";
import { withoutDialect } from "./check/output-schema.ts";

type Every = Required<ClaudeOptions>;

/** How each option for Claude Code reaches it. A key that is missing here does not compile. */
const MAPPING: { readonly [K in keyof Every]: (value: Every[K]) => Partial<Options> } = {
  cwd: (cwd) => ({ cwd }),
  allowedTools: (allowedTools) => ({ allowedTools }),
  disallowedTools: (disallowedTools) => ({ disallowedTools }),
  maxTurns: (maxTurns) => ({ maxTurns }),
  model: (model) => ({ model }),
  systemPrompt: (prompt) => ({
    systemPrompt:
      typeof prompt === "string" ? prompt : { ...defaultPrompt, ...(prompt.append && { append: prompt.append }) },
  }),
  permissionMode: (permissionMode) => ({ permissionMode }),
  tools: (tools) => ({ tools }),
  agents: (agents) => ({ agents: agents }),
  agent: (agent) => ({ agent }),
  additionalDirectories: (additionalDirectories) => ({ additionalDirectories }),
  effort: (effort) => ({ effort }),
  thinking: (thinking) => ({ thinking }),
  fallbackModel: (fallbackModel) => ({ fallbackModel }),
  mcpServers: (mcpServers) => ({ mcpServers: mcpServers }),
  strictMcpConfig: (strictMcpConfig) => ({ strictMcpConfig }),
  outputFormat: ({ schema, type }) => ({ outputFormat: { type, schema: withoutDialect(schema) } }),
  settingSources: (settingSources) => ({ settingSources }),
  pathToClaudeCodeExecutable: (pathToClaudeCodeExecutable) => ({ pathToClaudeCodeExecutable }),
  betas: (betas) => ({ betas }),
  sandbox: (sandbox) => ({ sandbox }),
  enableFileCheckpointing: (enableFileCheckpointing) => ({ enableFileCheckpointing }),
  debug: (debug) => ({ debug }),
  debugFile: (debugFile) => ({ debugFile }),
  skills: (skills) => ({ skills }),
  title: (title) => ({ title }),
  taskBudget: (taskBudget) => ({ taskBudget }),
  forwardSubagentText: (forwardSubagentText) => ({ forwardSubagentText }),
  verbatimPrompts: (verbatimPrompts) => ({ verbatimPrompts }),
  permissionPrompts: (permissionPrompts) => ({ permissionPrompts }),
  planModeInstructions: (planModeInstructions) => ({ planModeInstructions }),
  promptSuggestions: (promptSuggestions) => ({ promptSuggestions }),
  agentProgressSummaries: (agentProgressSummaries) => ({ agentProgressSummaries }),
  includeHookEvents: (includeHookEvents) => ({ includeHookEvents }),
  // environment.ts adds it to what the process inherits.
  env: () => ({}),
  persistSession: (persistSession) => ({ persistSession }),
  includePartialMessages: (includePartialMessages) => ({ includePartialMessages }),
};

const defaultPrompt = { type: "preset", preset: "claude_code" } as const;

const DEFAULTS: Options = {
  // Without it Claude Code runs with a prompt of one line.
  systemPrompt: defaultPrompt,
  settingSources: ["user", "project", "local"],
  // Without it the settings of a user or of the caller's environment would choose, past the operator's gate.
  permissionMode: "default",
  // By default the SDK puts the servers' env and headers on the command line, where every user can read them.
  mcpServersDelivery: "initialize",
};

export function toSdkOptions(options: ClaudeOptions): Options {
  const mapped: Options = { ...DEFAULTS };
  for (const key of SessionOptions.keyof().options.filter(isForClaude)) Object.assign(mapped, mapOne(options, key));
  // Drops a fallback that the session's model was already switched to.
  if (mapped.fallbackModel === mapped.model) delete mapped.fallbackModel;
  return mapped;
}

function isForClaude(name: keyof SessionOptions): name is keyof ClaudeOptions {
  return traitsOf(name).usedBy !== "supervision";
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- it ties a value to the mapping of its key
function mapOne<K extends keyof Every>(options: Partial<Every>, key: K): Partial<Options> {
  const value: Every[K] | undefined = options[key];
  return value === undefined ? {} : MAPPING[key](value);
}

/** The Agent SDK refuses a model that is its own fallback. Throws INVALID_ARGUMENT. */
export function checkModels({ fallbackModel, model }: Pick<SessionOptions, "fallbackModel" | "model">): void {
  if (fallbackModel === undefined || fallbackModel !== model) return;
  throw invalidArgument("fallbackModel", `is the model itself, ${model}. Leave it out, or name another one.`);
}

/** Characters and names that the Agent SDK refuses. */
const IN_NO_SKILL = /[(),\p{Cc}\p{Cs}]|\\\\|^\/|^\*$|(?:[: ]|__)\*$/u;

/** Throws INVALID_ARGUMENT. */
export function checkSkills({ skills = "all" }: Pick<SessionOptions, "skills">): void {
  if (skills === "all") return;
  const wrong = skills.find((name) => name.trim() !== name || name === "" || IN_NO_SKILL.test(name));
  if (wrong === undefined) return;
  const advice = 'Name the folder of the skill, or plugin:skill, without patterns; "all" is every skill.';
  throw invalidArgument("skills", `${JSON.stringify(wrong)} can be the name of no skill. ${advice}`);
}
