import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { invalidArgument } from "../domain/error.ts";
import { SessionOptions } from "../domain/options.ts";
import { type ClaudeOptions, traitsOf } from "../domain/options/traits.ts";
import { withoutDialect } from "./preflight/output-schema.ts";

type Every = Required<ClaudeOptions>;

/** Maps each option for Claude Code to options of the SDK. A missing key does not compile. */
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
  // `environment.ts` adds `env` to the inherited variables.
  env: () => ({}),
  persistSession: (persistSession) => ({ persistSession }),
  includePartialMessages: (includePartialMessages) => ({ includePartialMessages }),
};

const defaultPrompt = { type: "preset", preset: "claude_code" } as const;

const DEFAULTS: Options = {
  // Otherwise Claude Code runs with a prompt of a single line.
  systemPrompt: defaultPrompt,
  settingSources: ["user", "project", "local"],
  // Otherwise settings of the user or the caller's environment choose the mode, past the operator's limit.
  permissionMode: "default",
  // By default the SDK puts `env` and headers of the servers on the command line, readable by every user.
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

/** Throws INVALID_ARGUMENT for a model that is its own fallback, which the Agent SDK refuses. */
export function checkModels({ fallbackModel, model }: Pick<SessionOptions, "fallbackModel" | "model">): void {
  if (fallbackModel === undefined || fallbackModel !== model) return;
  throw invalidArgument("fallbackModel", `is the model itself, ${model}. Leave it out, or name another one.`);
}

/** Characters and names refused by the Agent SDK. */
const IN_NO_SKILL = /[(),\p{Cc}\p{Cs}]|\\\\|^\/|^\*$|(?:[: ]|__)\*$/u;

/** Throws INVALID_ARGUMENT for a name that cannot name a skill. */
export function checkSkills({ skills = "all" }: Pick<SessionOptions, "skills">): void {
  if (skills === "all") return;
  const wrong = skills.find((name) => name.trim() !== name || name === "" || IN_NO_SKILL.test(name));
  if (wrong === undefined) return;
  const advice = 'Name the folder of the skill, or plugin:skill, without patterns; "all" is every skill.';
  throw invalidArgument("skills", `${JSON.stringify(wrong)} cannot name a skill. ${advice}`);
}
