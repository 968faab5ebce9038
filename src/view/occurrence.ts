import { type FeedName, feedEventId } from "../domain/feed.ts";
import { type StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import { OUTCOME_WORDS } from "../domain/turn.ts";
import { oneLine } from "./size.ts";

/** Presents an event of the feed to callers that it wakes: ids, status and one line. They fetch the rest with a tool. */

/** `EventOccurrence` of SEP-3415, without a cursor. At most 2 KB. */
export interface Occurrence {
  readonly eventId: string;
  readonly name: FeedName;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly data: JsonObject;
}

/** Facts about the session. */
interface OccurrenceSession {
  readonly id: string;
  readonly title: string | undefined;
  /** Status on the wire. */
  readonly status: string;
}

/** Maximum length of texts, characters. */
const MAX_LINE = 200;
const MAX_TITLE = 100;

/** `mask` removes secrets. */
export function presentOccurrence(
  name: FeedName,
  event: StoredEvent,
  { session, mask }: { readonly session: OccurrenceSession; readonly mask: (fields: JsonObject) => JsonObject },
): Occurrence {
  const { id: sessionId, status, title } = session;
  return {
    eventId: feedEventId(sessionId, event.id),
    name,
    timestamp: new Date(event.at).toISOString(),
    // Masks before `inLines` cuts, because `mask` does not know a part of a secret.
    data: inLines(mask({ sessionId, status, ...(title !== undefined && { title }), ...detailsOf(event) })),
  };
}

/** Cuts `title` and `text`, and joins their lines. */
function inLines({ text, title, ...fields }: JsonObject): JsonObject {
  const line = (name: string, value: unknown, max: number) =>
    typeof value === "string" ? { [name]: oneLine(value, max) } : {};
  return { ...fields, ...line("title", title, MAX_TITLE), ...line("text", text, MAX_LINE) };
}

/** Details by type; other events are not in the feed. */
function detailsOf({ data, type }: StoredEvent): JsonObject {
  if (type === "turn.ended") {
    const { errorSubtype, message, outcome, turnId } = data;
    const text = message ?? `The turn ${OUTCOME_WORDS[outcome]}.`;
    return { turnId, outcome, ...(errorSubtype !== undefined && { errorSubtype }), text };
  }
  if (type === "verification.ended") return { turnId: data.turnId, verification: data.verification.status };
  if (type === "notice") return { text: data.message };
  if (type !== "permission.asked" && type !== "question.asked") return {};
  const { requestId, toolName } = data;
  // Leaves out the input, which can hold contents of files, and secrets that only the owner of the session can mask.
  const text = type === "question.asked" ? "Claude Code has a question." : `Claude Code asks to use ${toolName}.`;
  return { requestId, toolName, text };
}
