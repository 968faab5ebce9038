import type { Bound } from "../../domain/approvals/risk.ts";
import type { Command } from "../../domain/command.ts";
import type { ControlRequest } from "../../domain/control.ts";
import { AppError } from "../../domain/error.ts";
import type { Decision } from "../../domain/permission.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { inlineServerFields } from "../../domain/options/agents.ts";
import { type OptionsWith, TRAITS, traitsOf } from "../../domain/options/traits.ts";
import type { Caller, Principal } from "../../domain/principal.ts";
import type { Places, SessionPolicy } from "../../domain/approvals/session-policy.ts";
import { optionsOf } from "../../domain/session.ts";
import { checkLocalCommand } from "../../security/local-commands.ts";
import type { SessionRecord } from "../ports.ts";

/** Permissions of the operator for sessions, read at every use, because bypass can be switched at run time. */
export interface Gate {
  allowsBypass(): boolean;
  /** Tool by which a caller may allow `bypassPermissions`, if any. */
  readonly switchedBy?: string | undefined;
  /** Set in the gate of a session that was started without bypassPermissions being allowed. */
  readonly isBegunWithout?: boolean;
  /** Maximum risk that any caller may approve. */
  readonly callerApproves: Bound;
  /** `required` if every session of this server runs in the sandbox. */
  readonly sandbox: SessionPolicy["sandbox"];
  /** Hosts that commands in the sandbox may reach. */
  readonly sandboxDomains: readonly string[];
  /** True if callers have a tool to answer requests. */
  readonly callersAnswer: boolean;
  /** Nesting depth of this server in sessions of such servers, and its limit `maxDepth`. */
  readonly depth: number;
  readonly maxDepth: number;
  /** True if the principal may use the operator's options without the scope admin. */
  grantsOperatorOptions(principal: Principal): boolean;
  /** Returns the folders for the principal's sessions; `undefined` for a principal unknown to this server. */
  placesOf(principal: Principal): Places | undefined;
}

/** Options with a part that only the operator may set. */
const CHECKED_BY_VALUE: {
  readonly [K in OptionsWith<"access", "by value">]: (given: Partial<SessionOptions>) => void;
} = {
  agents: ({ agents }) => {
    for (const field of inlineServerFields(agents)) refuseOption(field, TRAITS.mcpServers.access.operatorOnly);
  },
};

/**
 * Refuses options that only the operator, callers with the scope admin and principals named by the operator may use. Checked
 * only for new options: a session continues with the options of its start, whichever token of its principal sends the next
 * prompt.
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

const OTHER_MODE = "To continue a session in this mode, change its mode: claude_code_session, set_permission_mode.";

/** Guards every route to bypassPermissions. `instead` says what helps without it. */
export function checkMode(gate: Gate, mode: string | undefined, instead = OTHER_MODE): void {
  if (mode !== "bypassPermissions" || gate.allowsBypass()) return;
  if (gate.isBegunWithout) {
    const problem =
      "permissionMode bypassPermissions is not allowed in this session: it was not allowed where the session was started";
    throw new AppError("PERMISSION_DENIED", `${problem}. Start a new session for it.`);
  }
  const byTool = gate.switchedBy === undefined ? "" : `, or ${gate.switchedBy} with action enable_bypass`;
  const advice = `The operator allows it with --allow-bypass or CLAUDE_CODE_MCP_ALLOW_BYPASS=1${byTool}.`;
  throw new AppError(
    "PERMISSION_DENIED",
    `permissionMode bypassPermissions is not allowed on this server. ${advice} ${instead}`,
  );
}

/** Throws PERMISSION_DENIED for a `decision` other than `deny` of a caller without the scope approve. */
export function checkAnswers({ scopes }: Caller, { decision }: { readonly decision: string }): void {
  if (decision === "deny" || scopes.includes("approve")) return;
  const had = scopes.length === 0 ? "no scope" : scopes.join(", ");
  throw new AppError("PERMISSION_DENIED", `Allowing a request needs the scope approve; this caller has ${had}.`);
}

export function checkDecision(gate: Gate, decision: Decision): void {
  const updates = decision.behavior === "allow" ? (decision.updatedPermissions ?? []) : [];
  for (const update of updates) if (update.type === "setMode") checkMode(gate, update.mode);
}

/** True if this server runs inside a session, at `maxDepth`. */
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

/** Refuses a session that the operator does not allow: before the creation, and at each prompt. */
export function checkOptions(gate: Gate, options: SessionOptions): void {
  if (gate.depth >= gate.maxDepth) refuseNested(gate);
  checkMode(gate, options.permissionMode);
  for (const [name, agent] of Object.entries(options.agents ?? {})) {
    checkMode(gate, agent.permissionMode, `Start a session without it (agents.${name.slice(0, 60)}.permissionMode).`);
    checkLocalCommand(`agents.${name.slice(0, 60)}.initialPrompt`, agent.initialPrompt ?? "");
  }
}

/** Throws if the session may get no further prompt, by the options of the next process and the mode of the present process. */
export function checkSession(gate: Gate, { spec, state }: SessionRecord): void {
  checkOptions(gate, optionsOf(spec, state));
  if (isUp(state)) checkMode(gate, state.reported.permissionMode);
}

export function isForbidden(gate: Gate, record: SessionRecord): boolean {
  try {
    checkSession(gate, record);
    return false;
  } catch {
    return true;
  }
}

/** Control requests that start Claude Code unless a process runs. */
const STARTING: ReadonlySet<ControlRequest["do"]> = new Set(["usage", "rewind"]);

/** True if the command may start Claude Code (a verification does, to repair). The server that takes the command checks the session first. */
export function startsWork({ data, kind }: Command, record: SessionRecord): boolean {
  if (kind === "queue") return data.do === "release";
  if (kind === "control") return startsClaude(data.request, record);
  return kind === "prompt" || kind === "verify" || kind === "continue";
}

/** True if Claude Code has to be started for `request`. */
export function startsClaude(request: ControlRequest, { state }: Pick<SessionRecord, "state">): boolean {
  return !isUp(state) && STARTING.has(request.do);
}

function isUp({ process }: SessionRecord["state"]): boolean {
  return process.phase === "starting" || process.phase === "live";
}
