/** Messages that other Claude Codes of the machine send to a session (`SendMessage`). */

/** `refuse`: no message reaches a session. `ask`: each is a request on the approval chain. */
export const PEER_MESSAGES = ["refuse", "ask"] as const;
export type PeerMessages = (typeof PEER_MESSAGES)[number];

/** Tool name of the request. Claude Code has no such tool, so no rule for one of its tools allows a message. */
export const PEER_MESSAGE = "PeerMessage";
