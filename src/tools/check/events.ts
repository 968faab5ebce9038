import { CALLER } from "../../domain/approvals/answer-source.ts";
import { requestOf, type StoredEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { presentEvent, timeOf, type ShownEvent } from "../../view/event.ts";
import { referToResult, typeOfEnd, selectFields } from "../../view/result.ts";
import { applyChange, changeFor, changesNothing, type ListForm } from "../../view/event-list.ts";
import { AskedCalls } from "./asked-calls.ts";
import { readEnd, type EndOfTurn, type ReadableSession } from "../readable-session.ts";

/** Reads the events of a session from a cursor, in the form requested by the caller. */

export interface Range {
  readonly from: number;
  /** Last event to read, so that events match the state read before. */
  readonly upTo: number;
  readonly maxEvents: number;
}

/** Last turn as shown in the answer, so that its end is not repeated in full. */
export interface LastTurn {
  readonly eventId: number | null;
  readonly result: JsonObject | undefined;
}

export interface ShownEvents {
  /** Single events; the code with the byte budget merges them into a list. */
  readonly events: readonly ShownEvent[];
  /** First id not read. */
  readonly next: number;
  /** First remaining event, if the event at `from` is gone. */
  readonly resetTo: number | undefined;
}

/** Reads events until `maxEvents` are shown; skips events without use to callers. */
export async function readShown(
  view: ReadableSession,
  range: Range,
  form: ListForm,
  last: LastTurn,
): Promise<ShownEvents> {
  const end = range.upTo + 1;
  if (!form.include.events) return { events: [], next: Math.max(range.from, end), resetTo: undefined };
  const events: ShownEvent[] = [];
  const list: ShownEvent[] = [];
  const calls = new AskedCalls(view, range.from, form);
  let next = range.from;
  let first: number | undefined;
  for await (const event of eventsOf(view, range)) {
    first ??= event.id;
    next = event.id + 1;
    calls.note(event);
    const plain = event.type === "turn.ended" ? await showEnd(view, event, form, last) : show(event, form);
    const shown = plain && (await calls.complete(plain, list));
    const change = shown && changeFor(list, shown, form);
    if (!change || changesNothing(change)) continue;
    events.push(shown);
    applyChange(list, change);
    if (list.length === range.maxEvents) break;
  }
  if (list.length < range.maxEvents) next = Math.max(next, end);
  const begin = first ?? Math.max(range.from, end);
  return { events, next, resetTo: begin > range.from ? begin : undefined };
}

/** Minimum and maximum number of events read at a time. A caller who wants few events is likely to see few. */
const [PAGE_LEAST, MAX_PAGE] = [20, 200];

async function* eventsOf(view: ReadableSession, { from, maxEvents, upTo }: Range): AsyncGenerator<StoredEvent> {
  const size = Math.min(Math.max(maxEvents, PAGE_LEAST), MAX_PAGE);
  let next = from;
  while (next <= upTo) {
    const page = await view.read(next, Math.min(size, upTo - next + 1));
    const last = page.at(-1);
    if (!last) return;
    yield* page.filter(({ id }) => id <= upTo);
    next = last.id + 1;
  }
}

/** Hides a request answered by this call and its answer, in minimal mode. */
function show(event: StoredEvent, { answered, mode }: ListForm): ShownEvent | undefined {
  const isAnswer = event.type === "permission.answered" || event.type === "question.answered";
  const isOwn = isAnswer ? event.data.by === CALLER && event.data.requestId === answered : isAsked(event, answered);
  return isOwn && mode === "minimal" ? undefined : presentEvent(event, mode);
}

function isAsked(event: StoredEvent, requestId: string | undefined): boolean {
  return requestId !== undefined && requestOf(event)?.requestId === requestId;
}

/** Returns `undefined` in minimal mode if the answer has the end of the turn as `result`. */
async function showEnd(
  view: ReadableSession,
  event: EndOfTurn,
  form: ListForm,
  last: LastTurn,
): Promise<ShownEvent | undefined> {
  const result = event.id === last.eventId ? last.result : undefined;
  if (result && form.mode === "minimal") return undefined;
  const data = result ? referToResult(result) : selectFields(await readEnd(view, event), form);
  return { id: event.id, type: typeOfEnd(event.data), data, ...timeOf(event, form.mode) };
}
