import { z } from "zod";
import { AppError } from "../../../domain/error.ts";
import type { ToolDeps } from "../../define.ts";

/** What a session is about may be private: folders, prompts and titles are told only where the operator allows it. */

export const IncludeSensitive = z.boolean().exactOptional().describe("Default: false");

/** Throws PERMISSION_DENIED, never leaves out in silence: a caller would take what is missing for what is not there. */
export function checkSensitive({ allows }: ToolDeps, wanted: readonly string[]): void {
  if (allows.sensitiveDetails || wanted.length === 0) return;
  const advice =
    "The operator allows it with --allow-sensitive-session-details or CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS=1.";
  const without = `Without ${wanted.join(", ")} the call is answered.`;
  throw new AppError(
    "PERMISSION_DENIED",
    `Folders, prompts and titles of sessions are not told on this server (${wanted.join(", ")}). ${without} ${advice}`,
  );
}
