import type { PermissionMode } from "../../domain/permission.ts";

/** What the operator has set for claude_code_query, and for nothing else (seed 003's variables). */
export interface QuerySettings {
  readonly enabled: boolean;
  readonly cwd: string | undefined;
  readonly model: string | undefined;
  readonly permissionMode: PermissionMode;
  readonly maxTurns: number | undefined;
  readonly maxMessages: number;
  readonly includeSystemMessages: boolean;
  readonly allowedTools: readonly string[];
  /** A query that takes longer is ended, ms. */
  readonly maxExecutionMs: number;
  /** The size of an answer, bytes of JSON. */
  readonly maxBytes: number;
}
