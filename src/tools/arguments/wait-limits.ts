import type { ToolLimits } from "../define.ts";

/** Default limit of a blocking call: as long as the client tolerates. */

/** Limit for other clients, below the time limit of every client known to us, ms. */
const DEFAULT_MS = 45_000;
/**
 * Limit for Claude Code, which tolerates a call for hours, ms. In its terminal the model continues during the call, and the
 * answer wakes the model.
 */
const CLAUDE_CODE_MS = 1_800_000;
const CLAUDE_CODE = "claude-code";

/** `client` is the name in `clientInfo`. `setMs`, set by the operator, applies to every client. */
export function waitLimits(setMs: number | undefined, client?: string): ToolLimits {
  const isLong = client === CLAUDE_CODE;
  return { maxWaitMs: setMs ?? (isLong ? CLAUDE_CODE_MS : DEFAULT_MS), prefersOneWait: isLong };
}
