import type { Rule } from "./rule.ts";

/**
 * Messages that other Claude Codes of the machine send to a session (`SendMessage`). Each is a request on the approval chain.
 */

/** Tool name of a request for such a message. Claude Code has no tool `PeerMessage`, so no rule for a tool allows a message. */
export const PEER_MESSAGE = "PeerMessage";

/** True if a rule denies peer messages: no message reaches a session, and other Claude Codes do not see the session. */
export function refusesPeers(deny: readonly Pick<Rule, "toolName">[]): boolean {
  return deny.some(({ toolName }) => toolName === PEER_MESSAGE);
}
