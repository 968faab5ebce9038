import type { SessionOptions } from "../options.ts";

/**
 * What each option of a session may do, and who may know of it. The operator's gate, the bounds of callers, the sandbox, the
 * view of a session and the key of a spare process read this table. An option without a row does not compile; a name that
 * has no row at run time is CLOSED.
 */

export type OptionName = keyof SessionOptions;

interface Rights {
  /** Who may give it: any caller with the scope run, or only the operator, with the reason (engine/policy/gate.ts). */
  readonly access: "any caller" | "by value" | { readonly operatorOnly: string };
  /** Whether it is taken with --sandbox required, or why not (claude/sandbox/sandboxed-options.ts). */
  readonly sandbox: "allowed" | "by value" | { readonly refused: string };
  /** What it lets run without a permission request (engine/policy/bounded-options.ts). */
  readonly approves: "nothing" | "by value" | "everything";
  /** How claude_code_session shows it: in both tiers, in the sensitive one, by its name alone, or never (tools/agent/session/view.ts). */
  readonly shown: "public" | "sensitive" | "by value" | "by name" | "never";
}

interface ClaudeTraits extends Rights {
  readonly usedBy: "claude" | "both";
  /** Part of what a spare is started with, set when a session claims it, or a reason to take no spare (claude/spares/spec.ts). */
  readonly spare: "key" | "claim" | "unfit";
}

/** Claude Code is not given it. */
interface SupervisionTraits extends Rights {
  readonly usedBy: "supervision";
  readonly spare?: undefined;
}

export type OptionTraits = ClaudeTraits | SupervisionTraits;

/** The traits of a new option, until its effects are reviewed. */
const CLOSED = {
  access: { operatorOnly: "it has not been opened to other callers" },
  sandbox: { refused: "it has not been shown to stay inside the sandbox" },
  approves: "everything",
  shown: "never",
} as const satisfies Rights;

/** Reaches nothing that a prompt could not reach. */
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
  // A subagent may bring MCP servers and a mode of its own.
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
  // Claude Code counts its own limit from the start of the process; ours is of each prompt.
  maxBudgetUsd: { ...OPEN, usedBy: "supervision", shown: "never" },
  timeout: { ...OPEN, usedBy: "supervision", shown: "never" },
  onLost: { ...OPEN, usedBy: "supervision", shown: "sensitive" },
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
  // A log of the session's own must not come from a process that was no session's yet.
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
  // Shown is the present title, which a rename changes.
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
} as const satisfies Readonly<Record<OptionName, OptionTraits>>;

/** The names of the options that have this value of a trait. */
export type OptionsWith<Trait extends keyof OptionTraits, Value> = {
  [K in OptionName]: (typeof TRAITS)[K] extends Readonly<Record<Trait, Value>> ? K : never;
}[OptionName];

/** What Claude Code is given (claude/sdk-options.ts). */
export type ClaudeOptions = Pick<SessionOptions, OptionsWith<"usedBy", "claude" | "both">>;

/** What bounds a session from outside of Claude Code (engine/policy/policy.ts). */
export type SupervisionOptions = Pick<SessionOptions, OptionsWith<"usedBy", "supervision" | "both">>;

export function traitsOf(name: string): OptionTraits {
  return isOption(name) ? TRAITS[name] : UNKNOWN;
}

function isOption(name: string): name is OptionName {
  return Object.hasOwn(TRAITS, name);
}
