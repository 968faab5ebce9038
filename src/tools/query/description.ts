import type { PermissionMode } from "../../domain/permission.ts";

/**
 * Builds the description of `claude_code_query` with the operator's defaults. Loads no schemas, because the proxy builds the
 * description too.
 */

export interface QueryDefaults {
  readonly cwd?: string | undefined;
  readonly model?: string | undefined;
  readonly maxTurns?: number | undefined;
  readonly maxMessages: number;
  readonly includeSystemMessages: boolean;
  readonly allowedTools: readonly string[];
  readonly maxExecutionMs: number;
}

export const DENIES = "tool uses that no rule allows are denied";

const WAITING =
  "Run Claude Code on a task, wait for its end, and return its messages and the result. Each message is also sent as a log notification.";
const AS_TASK =
  "Run Claude Code on a task. Returns at once; its messages and the result come by themselves, as a notification, and requests are shown to the user in a form.";

/** `isReplaced` is true if the operator's default mode may not be used. */
export function describeQuery(
  defaults: QueryDefaults,
  { isReplaced, mode }: { readonly isReplaced: boolean; readonly mode: PermissionMode },
  { followsTasks = false }: { readonly followsTasks?: boolean },
): string {
  const { allowedTools: allowed, cwd, includeSystemMessages, maxExecutionMs, maxMessages, maxTurns, model } = defaults;
  const known = [
    `permissionMode ${mode}${isReplaced ? ` (${DENIES})` : ""}`,
    `maxMessages ${String(maxMessages)}`,
    `includeSystemMessages ${String(includeSystemMessages)}`,
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(cwd === undefined ? [] : [`cwd ${cwd}`]),
    ...(maxTurns === undefined ? [] : [`maxTurns ${String(maxTurns)}`]),
    ...(allowed.length === 0 ? [] : [`allowedTools ${allowed.join(", ")}`]),
  ];
  return `${followsTasks ? AS_TASK : WAITING} Defaults: ${known.join(", ")}. Ends after ${String(maxExecutionMs)} ms.`;
}
