import { DEPTH_VARIABLE, PROCESS_VARIABLE } from "./names.ts";

/** Variables by which the server controls its processes. */

/** Otherwise Claude Code does not report the end of a turn. */
export const STATE_EVENTS = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS";

/**
 * With 0, Claude Code opens no socket for messages of other sessions, is in no list of sessions, and sends no messages.
 * Undocumented: without effect of the variable a session would only be visible, because `crossSessionInbound` refuses messages.
 */
export const MESSAGING = "CLAUDE_CODE_HARBOR_KITE";

/** With 1, a resumed Claude Code goes on with an interrupted turn. A user's own value would do so at every resume. */
export const RESUME = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN";

/** No caller and no profile changes them. Listed in docs/configuration.md. */
const SERVER_VARIABLES: Readonly<Record<string, string>> = {
  [DEPTH_VARIABLE]: "it counts how deep servers are nested in each other's sessions",
  [PROCESS_VARIABLE]: "the processes of a session are found by it",
  [STATE_EVENTS]: "the server learns from it when a turn has ended",
  [MESSAGING]: "rules for PeerMessage decide which messages reach a session",
  [RESUME]: "onLost decides whether a lost turn is run again",
};

/** Returns the objection to a variable reserved for the server, `undefined` for any other. */
export function whyReserved(name: string): string | undefined {
  const why = SERVER_VARIABLES[name.toUpperCase()];
  return why && `is set by the server: ${why}. Leave it out.`;
}
