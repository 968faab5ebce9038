import type { SessionEvent } from "./event.ts";
import { LOCAL_PRINCIPAL, type Principal } from "./principal.ts";
import type { SessionState } from "./session.ts";

/**
 * Kinds of the feed, which are the names of events in the Events extension of MCP (SEP-3415). The feed wakes callers, so that
 * nobody polls: `turn.ended`; `answer.needed`: a request waits for an answer; `session.waits`: the work waits for the end of a
 * limit, a slot, a client or a node; `verification.ended`.
 */
export const FEED_NAMES = ["turn.ended", "answer.needed", "session.waits", "verification.ended"] as const;
export type FeedName = (typeof FEED_NAMES)[number];

/** An event of a log as listed in the feed. */
export interface FeedEntry {
  readonly name: FeedName;
  /** Id of the event in the log of its session. */
  readonly eventId: number;
}

/** Returns the entries of an append, in order. `events` are its events, `state` is the state after the last of them. */
export function feedEntries(events: readonly SessionEvent[], state: SessionState): FeedEntry[] {
  const first = state.lastEventId - events.length + 1;
  return events.flatMap((event, index) => {
    const name = feedNameOf(event, state);
    return name === undefined ? [] : [{ name, eventId: first + index }];
  });
}

function feedNameOf(event: SessionEvent, { requests }: SessionState): FeedName | undefined {
  if (event.type === "turn.ended" || event.type === "verification.ended") return event.type;
  if (event.type === "notice") return isWait(event.data) ? "session.waits" : undefined;
  if (event.type !== "permission.asked" && event.type !== "question.asked") return undefined;
  // Leaves out a request that a rule has answered in the same append.
  return requests.some(({ requestId }) => requestId === event.data.requestId) ? "answer.needed" : undefined;
}

/** False for the progress of an installation, and for a message sent again after a wait. */
function isWait({ details = {}, kind }: Extract<SessionEvent, { type: "notice" }>["data"]): boolean {
  return kind === "waiting" && !("percent" in details) && !("messageId" in details);
}

/** Writes the id of an event for its receivers: session and sequence, so that it is the same in every mode and at every retry. */
export function feedEventId(sessionId: string, eventId: number): string {
  return `${sessionId}_${String(eventId)}`;
}

/** Webhooks that callers may name for events (`--event-webhooks`): with addresses of the public internet, or with any. */
export type WebhookReach = "any" | "public";

/** True if `principal` may name webhooks. The local user could reach the services of this machine through them. */
export function mayNameWebhooks(principal: Principal, reach: WebhookReach): boolean {
  return reach === "any" || principal !== LOCAL_PRINCIPAL;
}
