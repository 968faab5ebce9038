import type { Bound } from "../../domain/approvals/risk.ts";
import type { PermissionMode } from "../../domain/permission.ts";
import { mayUseMode } from "../../engine/policy/bound.ts";

/** What the operator has set for claude_code_query, and for nothing else (seed 003's variables). */
export interface QuerySettings {
  readonly enabled: boolean;
  readonly cwd?: string | undefined;
  readonly model?: string | undefined;
  readonly permissionMode: PermissionMode;
  readonly maxTurns?: number | undefined;
  readonly maxMessages: number;
  readonly includeSystemMessages: boolean;
  readonly allowedTools: readonly string[];
  /** A query that takes longer is ended, ms. */
  readonly maxExecutionMs: number;
  /** The size of an answer, bytes of JSON. */
  readonly maxBytes: number;
}

/** What decides whether the operator's default mode may be used. */
export interface ModeGate {
  readonly allowsBypass: boolean;
  /** The most that the caller may approve. */
  readonly bound: Bound;
}

/** The mode of a query that names none, and why it is not the operator's default. Seed 003 runs without asking where it may. */
export function modeInForce(
  mode: PermissionMode,
  { allowsBypass, bound }: ModeGate,
): { mode: PermissionMode; why?: string } {
  const isClosed = mode === "bypassPermissions" && !allowsBypass;
  if (!isClosed && mayUseMode(mode, bound)) return { mode };
  const why = isClosed
    ? "The default, bypassPermissions, is not allowed by the operator (--allow-bypass)."
    : `The default, ${mode}, lets more run without asking than this caller may approve (${bound}).`;
  return { mode: "dontAsk", why };
}
