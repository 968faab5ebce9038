import type { JsonObject } from "../../domain/json.ts";
import type { ToolCall, ToolDeps } from "../define.ts";

/**
 * A query is written down twice, for the audit log and on stderr: here when its session is known, and by `runTool` when
 * it is over, with what came of it. One that never ends by itself has left its first line.
 */
export function recordBegin(
  tool: string,
  begun: { readonly sessionId: string } & JsonObject,
  { principal }: ToolCall,
  { audit, log }: ToolDeps,
): void {
  const entry = { principal, tool, ...begun, outcome: "begun" };
  audit?.(entry);
  log.info("query begun", entry);
}
