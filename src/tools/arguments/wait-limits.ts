import type { ToolLimits } from "../define.ts";

/** How long a call may block, where the operator has not said: as long as the client at the other end bears it. */

/** Below the limit of every client we know of. */
const USUAL_MS = 45_000;
/** Claude Code bears a call for hours; in its terminal the model goes on beside one and is woken by the answer. */
const LONG_MS = 1_800_000;
const CLAUDE_CODE = "claude-code";

/** `client` is the name by which it introduces itself. What the operator has set holds for every client. */
export function waitLimits(setMs: number | undefined, client?: string): ToolLimits {
  const isLong = client === CLAUDE_CODE;
  return { maxWaitMs: setMs ?? (isLong ? LONG_MS : USUAL_MS), prefersOneWait: isLong };
}
