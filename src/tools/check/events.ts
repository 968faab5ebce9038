import { CALLER } from "../../domain/approvals/answer-source.ts";
import { requestOf, type StoredEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { presentEvent, timeOf, type ShownEvent } from "../../view/event.ts";
import { briefly, typeOfEnd, wantedOf } from "../../view/result.ts";
import { applyChange, changeFor, changesNothing, type Form } from "../../view/event-list.ts";
import { AskedCalls } from "./asked-calls.ts";
import { readEnd, type EndOfTurn, type SessionView } from "../session-view.ts";

/** The events of a session from a cursor on, as the caller wants them told. */

export interface Range {
  readonly from: number;
  /** The last event that is read, so that events and state tell of the same moment. */
  readonly upTo: number;
  readonly maxEvents: number;
}

/** What the same answer says of the last turn: its end need not be told twice. */
export interface LastTurn {
  readonly eventId: number | null;
  readonly result: JsonObject | undefined;
}

export interface ShownEvents {
  /** Each by itself: the code that knows the byte budget makes the list. */
  readonly events: readonly ShownEvent[];
  /** The first id that was not read. */
  readonly next: number;
  /** Where there is something to read, when what `from` points at is gone. */
  readonly resetTo: number | undefined;
}

/** Skips events that callers do not need. */
export async function readShown(view: SessionView, range: Range, form: Form, last: LastTurn): Promise<ShownEvents> {
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

/** Events that are read at a time: no more than a caller who wants few of them is likely to see. */
const [PAGE_LEAST, MAX_PAGE] = [20, 200];

async function* eventsOf(view: SessionView, { from, maxEvents, upTo }: Range): AsyncGenerator<StoredEvent> {
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

/** In mode minimal the request that the same call has answered is not repeated, nor its answer. */
function show(event: StoredEvent, { answered, mode }: Form): ShownEvent | undefined {
  const isAnswer = event.type === "permission.answered" || event.type === "question.answered";
  const isOwn = isAnswer ? event.data.by === CALLER && event.data.requestId === answered : isAsked(event, answered);
  return isOwn && mode === "minimal" ? undefined : presentEvent(event, mode);
}

function isAsked(event: StoredEvent, requestId: string | undefined): boolean {
  return requestId !== undefined && requestOf(event)?.requestId === requestId;
}

/** Nothing where the answer has it as its result, in mode minimal. */
async function showEnd(
  view: SessionView,
  event: EndOfTurn,
  form: Form,
  last: LastTurn,
): Promise<ShownEvent | undefined> {
  const result = event.id === last.eventId ? last.result : undefined;
  if (result && form.mode === "minimal") return undefined;
  const data = result ? briefly(result) : wantedOf(await readEnd(view, event), form);
  return { id: event.id, type: typeOfEnd(event.data), data, ...timeOf(event, form.mode) };
}
