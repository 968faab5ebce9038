import type { Bound } from "../domain/approvals/risk.ts";
import type { Command } from "../domain/command.ts";
import type { ControlRequest } from "../domain/control.ts";
import { AppError } from "../domain/error.ts";
import type { Decision } from "../domain/permission.ts";
import type { SessionOptions } from "../domain/options.ts";
import { inlineServerFields } from "../domain/options/agents.ts";
import { type OptionsWith, TRAITS, traitsOf } from "../domain/options/traits.ts";
import type { Caller, Principal } from "../domain/principal.ts";
import type { Places, SessionPolicy } from "../domain/approvals/session-policy.ts";
import { optionsOf } from "../domain/session.ts";
import { checkLocalCommand } from "../security/local-commands.ts";
import type { AnswerRequest } from "./api.ts";
import type { SessionRecord } from "./ports.ts";

/** What the operator allows. Read at every use: the bypass gate can be switched at run time. */
export interface Gate {
  allowsBypass(): boolean;
  /** The tool by which a caller may open it, where there is one. */
  readonly switchedBy?: string | undefined;
  /** Of the gate of one session: it began where bypassPermissions was not allowed. */
  readonly isBegunWithout?: boolean;
  /** The most that any caller may approve. */
  readonly callerApproves: Bound;
  /** Whether every session of this server runs in the sandbox. */
  readonly sandbox: SessionPolicy["sandbox"];
  /** Hosts that commands may reach then. */
  readonly sandboxDomains: readonly string[];
  /** Whoever calls here has a tool to answer requests with. */
  readonly callersAnswer: boolean;
  /** How deep this server is nested in sessions of servers like it, and how deep it may be. */
  readonly depth: number;
  readonly maxDepth: number;
  /** Whether the principal may use what is for the operator, whatever his scopes. */
  grantsOperatorOptions(principal: Principal): boolean;
  /** Where the principal's sessions may work; undefined for one that this server does not know. */
  placesOf(principal: Principal): Places | undefined;
}

/** Options of which a part is for the operator. */
const CHECKED_BY_VALUE: {
  readonly [K in OptionsWith<"access", "by value">]: (given: Partial<SessionOptions>) => void;
} = {
  agents: ({ agents }) => {
    for (const field of inlineServerFields(agents)) refuseOption(field, TRAITS.mcpServers.access.operatorOnly);
  },
};

/**
 * Refuses options that only the operator, a caller with scope admin, and whom the operator names may use. Asked where they
 * are given: a session goes on with what it was started with, whoever of its principal's tokens the next prompt comes by.
 */
export function checkGiven(gate: Gate, { principal, scopes }: Caller, options: Partial<SessionOptions>): void {
  if (scopes.includes("admin") || gate.grantsOperatorOptions(principal)) return;
  for (const name of Object.keys(options)) {
    const { access } = traitsOf(name);
    if (typeof access === "object") refuseOption(name, access.operatorOnly);
  }
  for (const check of Object.values(CHECKED_BY_VALUE)) check(options);
}

function refuseOption(name: string, why: string): never {
  const advice = "Leave it out, or use a token with the scope admin.";
  throw new AppError("PERMISSION_DENIED", `${name}: only the operator may set it, because ${why}. ${advice}`);
}

/** Every road to bypassPermissions passes here. */
export function checkMode(gate: Gate, mode: string | undefined): void {
  if (mode !== "bypassPermissions" || gate.allowsBypass()) return;
  if (gate.isBegunWithout) {
    const problem =
      "permissionMode bypassPermissions is not allowed in this session: it was not allowed where the session was started";
    throw new AppError("PERMISSION_DENIED", `${problem}. Start a new session for it.`);
  }
  const byTool = gate.switchedBy === undefined ? "" : `, or ${gate.switchedBy} with action enable_bypass`;
  const advice = `The operator allows it with --allow-bypass or CLAUDE_CODE_MCP_ALLOW_BYPASS=1${byTool}.`;
  throw new AppError("PERMISSION_DENIED", `permissionMode bypassPermissions is not allowed on this server. ${advice}`);
}

/** Whoever may not approve can deny, and nothing else. */
export function checkAnswers({ scopes }: Caller, { decision }: Pick<AnswerRequest, "decision">): void {
  if (decision === "deny" || scopes.includes("approve")) return;
  const had = scopes.length === 0 ? "no scope" : scopes.join(", ");
  throw new AppError("PERMISSION_DENIED", `Allowing a request needs the scope approve; this caller has ${had}.`);
}

export function checkDecision(gate: Gate, decision: Decision): void {
  const updates = decision.behavior === "allow" ? (decision.updatedPermissions ?? []) : [];
  for (const update of updates) if (update.type === "setMode") checkMode(gate, update.mode);
}

/** Whether this server runs inside a session of a server like it, as deep as it may be. */
export function isNested({ depth, maxDepth }: Pick<Gate, "depth" | "maxDepth">): boolean {
  return depth > 0 && depth >= maxDepth;
}

export function refuseNested({ depth }: Pick<Gate, "depth">): never {
  const where =
    depth > 0
      ? `runs inside a session of claude-agents-mcp already (depth ${String(depth)}): it starts nothing, answers nothing and changes nothing`
      : "starts no sessions (--max-depth 0)";
  const advice = "Do the work in this session, or raise --max-depth.";
  throw new AppError("PERMISSION_DENIED", `This server ${where}. ${advice}`);
}

/** Refuses a session that the operator does not want: before it is made, and at each prompt. */
export function checkOptions(gate: Gate, options: SessionOptions): void {
  if (gate.depth >= gate.maxDepth) refuseNested(gate);
  checkMode(gate, options.permissionMode);
  for (const [name, agent] of Object.entries(options.agents ?? {})) {
    checkMode(gate, agent.permissionMode);
    checkLocalCommand(`agents.${name.slice(0, 60)}.initialPrompt`, agent.initialPrompt ?? "");
  }
}

/** Whether the session may be given another prompt: by the options of its next process, and as its present one runs. */
export function checkSession(gate: Gate, { spec, state }: SessionRecord): void {
  checkOptions(gate, optionsOf(spec, state));
  if (isUp(state)) checkMode(gate, state.reported.permissionMode);
}

export function isBarred(gate: Gate, record: SessionRecord): boolean {
  try {
    checkSession(gate, record);
    return false;
  } catch {
    return true;
  }
}

/** What is asked of Claude Code that starts it where it does not run. */
const STARTING: ReadonlySet<ControlRequest["do"]> = new Set(["usage", "rewind"]);

/** Whether Claude Code may be started for it: the server that takes such a command answers for what then runs. */
export function startsWork({ data, kind }: Command, record: SessionRecord): boolean {
  if (kind === "queue") return data.do === "release";
  if (kind === "control") return startsClaude(data.request, record);
  return kind === "prompt";
}

/** Whether Claude Code has to be started to be asked this. */
export function startsClaude(request: ControlRequest, { state }: Pick<SessionRecord, "state">): boolean {
  return !isUp(state) && STARTING.has(request.do);
}

function isUp({ process }: SessionRecord["state"]): boolean {
  return process.phase === "starting" || process.phase === "live";
}
