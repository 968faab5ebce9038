import type { Rule } from "./rule.ts";

/** Messages that other Claude Codes of the machine send to a session (`SendMessage`): each is a request on the approval chain. */

/** Tool name of the request. Claude Code has no such tool, so no rule for one of its tools allows a message. */
export const PEER_MESSAGE = "PeerMessage";

/** Turned away by a rule: then no message reaches a session, and others do not see it. */
export function refusesPeers(deny: readonly Pick<Rule, "toolName">[]): boolean {
  return deny.some(({ toolName }) => toolName === PEER_MESSAGE);
}
