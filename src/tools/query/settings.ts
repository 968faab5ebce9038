import type { Bound } from "../../domain/approvals/risk.ts";
import type { PermissionMode } from "../../domain/permission.ts";
import { mayUseMode } from "../../engine/policy/bound.ts";

/** Settings of the operator for `claude_code_query`. */
export interface QuerySettings {
  readonly enabled: boolean;
  readonly cwd?: string | undefined;
  readonly model?: string | undefined;
  readonly permissionMode: PermissionMode;
  readonly maxTurns?: number | undefined;
  readonly maxMessages: number;
  readonly includeSystemMessages: boolean;
  readonly allowedTools: readonly string[];
  /** Time limit of a query, ms. */
  readonly maxExecutionMs: number;
  /** Maximum size of an answer, bytes of JSON. */
  readonly maxBytes: number;
}

/** Conditions for using the operator's default mode. */
export interface ModeGate {
  readonly allowsBypass: boolean;
  /** Maximum risk that the caller may approve. */
  readonly bound: Bound;
}

/** Returns the mode of a query without `permissionMode`; `why` explains a mode other than the operator's default. */
export function effectiveMode(
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
