import type { Command } from "../domain/command.ts";
import type { ControlRequest } from "../domain/control.ts";
import { AppError } from "../domain/error.ts";
import type { Decision } from "../domain/permission.ts";
import type { SessionOptions } from "../domain/options.ts";
import { optionsOf } from "../domain/session.ts";
import type { SessionRecord } from "./ports.ts";

/** What the operator allows. Read at every use: the bypass gate can be switched at run time. */
export interface Gate {
  allowsBypass(): boolean;
  /** How deep this server is nested in sessions of servers like it, and how deep it may be. */
  readonly depth: number;
  readonly maxDepth: number;
}

/** Every road to bypassPermissions passes here. */
export function checkMode(gate: Gate, mode: string | undefined): void {
  if (mode !== "bypassPermissions" || gate.allowsBypass()) return;
  const advice = "The operator allows it with --allow-bypass or CLAUDE_CODE_MCP_ALLOW_BYPASS=1.";
  throw new AppError("PERMISSION_DENIED", `permissionMode bypassPermissions is not allowed on this server. ${advice}`);
}

export function checkDecision(gate: Gate, decision: Decision): void {
  const updates = decision.behavior === "allow" ? (decision.updatedPermissions ?? []) : [];
  for (const update of updates) if (update.type === "setMode") checkMode(gate, update.mode);
}

/** Folders that a decision would open to Claude Code: the operator confines them like those of the start. */
export function addedDirectories(decision: Decision): string[] {
  const updates = decision.behavior === "allow" ? (decision.updatedPermissions ?? []) : [];
  return updates.flatMap((update) => (update.type === "addDirectories" ? update.directories : []));
}

/** Refuses a session that the operator does not want: before it is made, and at each prompt. */
export function checkOptions(gate: Gate, options: SessionOptions): void {
  if (gate.depth >= gate.maxDepth) {
    const problem = `This server runs inside a session of claude-code-mcp already (depth ${String(gate.depth)}).`;
    const advice = "Do the work in this session, or raise --max-depth.";
    throw new AppError("PERMISSION_DENIED", `${problem} ${advice}`);
  }
  checkMode(gate, options.permissionMode);
  for (const agent of Object.values(options.agents ?? {})) checkMode(gate, agent.permissionMode);
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
export function startsWork({ data, kind }: Command, { state }: SessionRecord): boolean {
  if (kind === "queue") return data.do === "release";
  if (kind === "control") return !isUp(state) && STARTING.has(data.request.do);
  return kind === "prompt";
}

function isUp({ process }: SessionRecord["state"]): boolean {
  return process.phase === "starting" || process.phase === "live";
}
