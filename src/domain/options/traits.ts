import type { SessionOptions } from "../options.ts";

/**
 * Effects and visibility of each session option. The operator's gate, the bounds of callers, the sandbox, the view of a session
 * and the key of a spare process read this table. An option without a row does not compile; a name without a row at run time is
 * `CLOSED`.
 */

export type OptionName = keyof SessionOptions;

interface Rights {
  /**
   * Callers who may set the option: any with the scope `run`, or only the operator, with the reason (`engine/policy/gate.ts`).
   */
  readonly access: "any caller" | "by value" | { readonly operatorOnly: string };
  /** Use with `--sandbox required`: allowed, or refused with the reason (`claude/sandbox/sandboxed-options.ts`). */
  readonly sandbox: "allowed" | "by value" | { readonly refused: string };
  /** Tool uses that the option lets run without a permission request (`engine/policy/bounded-options.ts`). */
  readonly approves: "nothing" | "by value" | "everything";
  /**
   * Visibility in `claude_code_session`: in both tiers, in the sensitive tier, by name only, or never
   * (`tools/agent/session/session-fields.ts`).
   */
  readonly shown: "public" | "sensitive" | "by value" | "by name" | "never";
}

interface ClaudeTraits extends Rights {
  readonly usedBy: "claude" | "both";
  /**
   * Role for spares: part of the start (`key`), set when a session claims the spare, or no spare possible
   * (`claude/spares/spec.ts`).
   */
  readonly spare: "key" | "claim" | "unfit";
}

/** Traits of an option that Claude Code does not get. */
interface SupervisionTraits extends Rights {
  readonly usedBy: "supervision";
  readonly spare?: undefined;
}

export type OptionTraits = ClaudeTraits | SupervisionTraits;

/** Traits of a new option, until its effects are reviewed. */
const CLOSED = {
  access: { operatorOnly: "it has not been opened to other callers" },
  sandbox: { refused: "it has not been shown to stay inside the sandbox" },
  approves: "everything",
  shown: "never",
} as const satisfies Rights;

/** Traits of an option that reaches nothing a prompt could not reach. */
const OPEN = { access: "any caller", sandbox: "allowed", approves: "nothing" } as const;

const UNKNOWN: OptionTraits = { ...CLOSED, usedBy: "claude", spare: "key" };

export const TRAITS = {
  cwd: { ...OPEN, usedBy: "both", shown: "sensitive", spare: "claim" },
  allowedTools: { ...OPEN, usedBy: "claude", approves: "by value", shown: "sensitive", spare: "key" },
  disallowedTools: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  maxTurns: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  model: { ...OPEN, usedBy: "claude", shown: "public", spare: "key" },
  systemPrompt: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  permissionMode: { ...OPEN, usedBy: "claude", approves: "by value", shown: "public", spare: "claim" },
  permissionRequestTimeoutMs: { ...OPEN, usedBy: "supervision", shown: "sensitive" },
  tools: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  // A subagent may bring MCP servers and a permission mode.
  agents: {
    usedBy: "claude",
    access: "by value",
    sandbox: "by value",
    approves: "by value",
    shown: "by value",
    spare: "key",
  },
  agent: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  additionalDirectories: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "claim" },
  effort: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  thinking: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  fallbackModel: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  mcpServers: {
    usedBy: "claude",
    access: { operatorOnly: "it starts programs and connections of the caller's choice" },
    sandbox: { refused: "they run outside the sandbox. The operator can configure them for the user" },
    approves: "by value",
    shown: "by value",
    spare: "key",
  },
  strictMcpConfig: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  outputFormat: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  settingSources: { ...OPEN, usedBy: "claude", shown: "sensitive", spare: "key" },
  env: {
    usedBy: "claude",
    access: { operatorOnly: "it changes what Claude Code runs and who pays" },
    sandbox: { refused: "with it another program can take the place of the sandbox" },
    approves: "nothing",
    shown: "by name",
    spare: "key",
  },
  pathToClaudeCodeExecutable: {
    usedBy: "claude",
    access: { operatorOnly: "it names a program of the server's machine to run" },
    sandbox: { refused: "another program need not have a sandbox" },
    approves: "nothing",
    shown: "sensitive",
    spare: "key",
  },
  persistSession: { ...OPEN, usedBy: "both", shown: "never", spare: "key" },
  includePartialMessages: { ...OPEN, usedBy: "claude", shown: "never", spare: "key" },
  // Claude Code's own limit counts from the start of the process; ours counts for each prompt.
  maxBudgetUsd: { ...OPEN, usedBy: "supervision", shown: "never" },
  timeout: { ...OPEN, usedBy: "supervision", shown: "never" },
  onLost: { ...OPEN, usedBy: "supervision", shown: "sensitive" },
  onLimit: { ...OPEN, usedBy: "supervision", shown: "sensitive" },
  priority: { ...OPEN, usedBy: "supervision", shown: "sensitive" },
  node: { ...OPEN, usedBy: "supervision", shown: "sensitive" },
  labels: { ...OPEN, usedBy: "supervision", shown: "sensitive" },
  // `engine/session/records.ts` checks the caller's right to the profile.
  profile: { ...OPEN, usedBy: "supervision", shown: "sensitive" },
  sessionInitTimeoutMs: { ...OPEN, usedBy: "supervision", shown: "sensitive" },
  betas: {
    usedBy: "claude",
    access: { operatorOnly: "it changes what the operator pays for" },
    sandbox: "allowed",
    approves: "nothing",
    shown: "never",
    spare: "key",
  },
  sandbox: {
    usedBy: "claude",
    access: { operatorOnly: "it can undo the isolation that the operator has set" },
    sandbox: "by value",
    approves: "by value",
    shown: "never",
    spare: "key",
  },
  enableFileCheckpointing: { ...OPEN, usedBy: "claude", shown: "never", spare: "key" },
  // A session's log must not contain a spare's output from before the session.
  debug: {
    usedBy: "claude",
    access: { operatorOnly: "it writes into the configuration folder" },
    sandbox: { refused: "Claude Code writes its log from outside the sandbox" },
    approves: "nothing",
    shown: "never",
    spare: "unfit",
  },
  debugFile: {
    usedBy: "claude",
    access: { operatorOnly: "it writes a file that no permission is asked for" },
    sandbox: { refused: "Claude Code writes it from outside the sandbox" },
    approves: "nothing",
    shown: "never",
    spare: "unfit",
  },
  skills: { ...OPEN, usedBy: "claude", approves: "by value", shown: "never", spare: "key" },
  // The view shows the present title, which a rename changes.
  title: { ...OPEN, usedBy: "claude", shown: "by value", spare: "claim" },
  taskBudget: { ...OPEN, usedBy: "claude", shown: "never", spare: "key" },
  forwardSubagentText: { ...OPEN, usedBy: "claude", shown: "never", spare: "key" },
  verbatimPrompts: { ...OPEN, usedBy: "claude", shown: "never", spare: "key" },
  permissionPrompts: { ...OPEN, usedBy: "claude", shown: "never", spare: "key" },
  callerApproves: { ...OPEN, usedBy: "supervision", shown: "never" },
  planModeInstructions: { ...OPEN, usedBy: "claude", shown: "never", spare: "key" },
  promptSuggestions: { ...OPEN, usedBy: "claude", shown: "never", spare: "key" },
  agentProgressSummaries: { ...OPEN, usedBy: "claude", shown: "never", spare: "key" },
  includeHookEvents: { ...OPEN, usedBy: "claude", shown: "never", spare: "key" },
  // Approves nothing: the commands are judged as uses of `Bash`.
  verify: {
    usedBy: "supervision",
    access: "any caller",
    sandbox: { refused: "the sandbox is Claude Code's own, and the server would run the commands outside it" },
    approves: "nothing",
    shown: "sensitive",
  },
} as const satisfies Readonly<Record<OptionName, OptionTraits>>;

/** Names of the options with `Value` for `Trait`. */
export type OptionsWith<Trait extends keyof OptionTraits, Value> = {
  [K in OptionName]: (typeof TRAITS)[K] extends Readonly<Record<Trait, Value>> ? K : never;
}[OptionName];

/** Options passed to Claude Code (`claude/sdk-options.ts`). */
export type ClaudeOptions = Pick<SessionOptions, OptionsWith<"usedBy", "claude" | "both">>;

/** Options that bound a session from outside Claude Code (`engine/policy/policy.ts`). */
export type SupervisionOptions = Pick<SessionOptions, OptionsWith<"usedBy", "supervision" | "both">>;

export function traitsOf(name: string): OptionTraits {
  return isOption(name) ? TRAITS[name] : UNKNOWN;
}

function isOption(name: string): name is OptionName {
  return Object.hasOwn(TRAITS, name);
}
