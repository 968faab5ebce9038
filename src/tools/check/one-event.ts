import type { StoredEvent } from "../../domain/event.ts";
import { invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import { statusOf } from "../../domain/session.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import { presentEvent } from "../../view/event.ts";
import { typeOfEnd } from "../../view/result.ts";
import { beginningWithin, jsonBytes } from "../../view/size.ts";
import { readEnd, type ReadableSession } from "../readable-session.ts";

/**
 * Shows a single event in full, as text in pages, for everything cut in answers. Offsets count UTF-16 code units; no character
 * is split.
 */

export interface PageRequest {
  readonly eventId: number;
  readonly offset: number;
  readonly limit: number;
  readonly maxBytes: number;
}

export async function answerPage(
  view: ReadableSession,
  request: PageRequest,
  call: ToolCall,
  deps: ToolDeps,
): Promise<JsonObject> {
  const { state } = await view.record();
  const event = await readEvent(view, request.eventId, state.lastEventId);
  const { content, type } = await readContent(view, event);
  const from = Math.min(toCharacterBoundary(content, request.offset), content.length);
  const head = { sessionId: view.id, status: statusOf(state), eventId: event.id, type };
  const timestamp = new Date(event.at).toISOString();
  const places = { offset: from, totalChars: content.length };
  const frame = { ...head, timestamp, ...places, nextOffset: content.length, content: "" };
  const text = pageOf(content, { from, limit: request.limit, bytes: request.maxBytes - jsonBytes(frame) });
  const to = from + text.length;
  const open = state.requests.find(({ eventId }) => eventId === event.id);
  if (open && !call.signal.aborted) {
    const page = { from, to, of: content.length };
    await deps.engine.delivered(call.principal, view.id, [{ requestId: open.requestId, whole: false, page }]);
  }
  return { ...head, timestamp, ...places, ...(to < content.length && { nextOffset: to }), content: text };
}

async function readEvent(view: ReadableSession, eventId: number, lastEventId: number): Promise<StoredEvent> {
  const [event] = eventId > lastEventId ? [] : await view.read(eventId, 1);
  if (event?.id === eventId) return event;
  const where = event ? `the log begins with ${String(event.id)}` : `the log ends with ${String(lastEventId)}`;
  throw invalidArgument("eventId", `there is no event ${String(eventId)}; ${where}.`);
}

/** Returns the event as in mode full. Events hidden in mode full are internal. */
async function readContent(view: ReadableSession, event: StoredEvent): Promise<{ type: string; content: string }> {
  if (event.type === "turn.ended") {
    return { type: typeOfEnd(event.data), content: JSON.stringify(await readEnd(view, event)) };
  }
  const shown = presentEvent(event, "full");
  if (shown) return { type: shown.type, content: JSON.stringify(shown.data) };
  throw invalidArgument("eventId", `event ${String(event.id)} (${event.type}) is not visible to callers.`);
}

function pageOf(content: string, { from, limit, bytes }: { from: number; limit: number; bytes: number }): string {
  const end = toCharacterBoundary(content, from + limit);
  // A page too short for a character has the character whole, so that paging makes progress.
  return beginningWithin(content.slice(from, Math.max(end, from + characterLength(content, from))), bytes);
}

/** Rounds down to a character boundary. */
function toCharacterBoundary(text: string, place: number): number {
  return characterLength(text, place - 1) === 2 ? place - 1 : place;
}

/** Returns the number of UTF-16 code units of the character at `place`. */
function characterLength(text: string, place: number): number {
  return (text.codePointAt(place) ?? 0) > 0xffff ? 2 : 1;
}
