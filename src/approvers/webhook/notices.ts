import { type ByEventType, decideBy } from "../../domain/event-table.ts";
import { feedEventId } from "../../domain/feed.ts";
import type { OpenRequest } from "../../domain/permission.ts";
import type { SessionState } from "../../domain/session.ts";
import type { Append, NewDelivery } from "../../engine/ports.ts";
import type { NoticeType } from "./settings.ts";

/** Messages to the operator's webhook, by the events that cause them. */

interface Notice {
  readonly name: NoticeType;
  readonly eventId: number;
  /** True if only the owner of the session sends it, because only the owner knows which secrets of the input to mask. */
  readonly isOfOwner?: boolean;
}

interface Place {
  /** Id of the event. */
  readonly eventId: number;
  /** State after the append of the event. */
  readonly state: SessionState;
}

/** `errorSubtype` of a turn that has exceeded its budget, set by Claude Code or by this server. */
const BUDGET_EXCEEDED = "error_max_budget_usd";

const none = (): Notice[] => [];

/** Leaves out a request that was answered in the same append, by a rule for example. */
const ofRequest = ({ requestId }: { requestId: string }, { state }: Place): Notice[] =>
  state.requests.filter((open) => open.requestId === requestId).map((open) => noticeOfRequest(open));

const NOTICES: ByEventType<readonly Notice[], [Place]> = {
  "session.opened": none,
  "session.configured": none,
  "session.closed": none,
  "prompt.queued": none,
  "prompt.steered": none,
  "prompt.dropped": none,
  "turn.started": none,
  "turn.baseline": none,
  "verification.started": none,
  "verification.ended": none,
  "turn.receipt": none,
  "turn.ended": ({ errorSubtype }, { eventId }) => [
    { name: "turn.ended", eventId },
    ...(errorSubtype === BUDGET_EXCEEDED ? [{ name: "budget.reached" as const, eventId }] : []),
  ],
  message: none,
  "permission.asked": ofRequest,
  "permission.answered": none,
  "question.asked": ofRequest,
  "question.answered": none,
  "request.passed": none,
  "background.changed": none,
  // The new owner sends what the former owner has not sent.
  notice: ({ kind }, { state }) =>
    kind === "owner.changed" ? state.requests.map((open) => noticeOfRequest(open)) : [],
  "process.started": none,
  "process.exited": none,
};

function noticeOfRequest({ eventId, kind }: OpenRequest): Notice {
  return { name: kind === "question" ? "question.asked" : "permission.asked", eventId, isOfOwner: true };
}

export interface Recipient {
  readonly target: string;
  readonly nodeId: string;
  /** True if requests are not offered to the webhook, so that it is notified of them. */
  readonly isToldOfRequests: boolean;
}

/** Returns the messages for an append. */
export function noticesOf(
  sessionId: string,
  { events, state }: Append,
  { isToldOfRequests, nodeId, target }: Recipient,
): NewDelivery[] {
  const first = state.lastEventId - events.length + 1;
  const notices = events.flatMap((event, index) => decideBy(NOTICES, event, { eventId: first + index, state }) ?? []);
  return notices.flatMap(({ eventId, isOfOwner = false, name }) => {
    if (isOfOwner && !isToldOfRequests) return [];
    const messageId = messageIdOf(sessionId, eventId, name);
    return { target, messageId, eventId, name, ...(isOfOwner && { nodeId }) };
  });
}

/** Returns the delivery of an offered request. */
export function offerOf(
  sessionId: string,
  open: OpenRequest,
  terms: Pick<NewDelivery, "nodeId" | "target" | "until">,
): NewDelivery {
  const { eventId, name } = noticeOfRequest(open);
  return { ...terms, messageId: messageIdOf(sessionId, eventId, name), eventId, name };
}

/** Derives the id, so that it is the same at each attempt and by each server. An end of a turn may have two messages. */
function messageIdOf(sessionId: string, eventId: number, name: NoticeType): string {
  const id = `msg_${feedEventId(sessionId, eventId)}`;
  return name === "budget.reached" ? `${id}_budget` : id;
}
