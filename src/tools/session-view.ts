import type { StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { SessionState } from "../domain/session.ts";
import type { WaitUntil } from "../engine/api.ts";
import type { SessionRecord } from "../engine/ports.ts";
import type { ToolCall, ToolDeps } from "./define.ts";
import { presentEvent, type ShownEvent } from "./present/event.ts";
import { briefly, presentResult, typeOfEnd } from "./present/result.ts";

/** One session as one caller may read it. */
export interface SessionView {
  readonly id: string;
  record(): Promise<SessionRecord>;
  read(from: number, limit: number): Promise<StoredEvent[]>;
  wait(cursor: number, until: WaitUntil, timeoutMs: number): Promise<{ woke: string | undefined }>;
}

export function viewSession(id: string, { principal, signal }: ToolCall, { engine, reported }: ToolDeps): SessionView {
  return {
    id,
    record: () => engine.get(principal, id),
    read: async (from, limit) => {
      const events = await engine.read(principal, id, from, limit);
      reported?.learn(events);
      return events;
    },
    wait: (cursor, until, timeoutMs) =>
      engine.wait(principal, { sessions: [{ sessionId: id, cursor }], until, timeoutMs, signal }),
  };
}

/** How the last turn ended; undefined while one runs, or before the first has ended. */
export async function readResult(view: SessionView, state: SessionState): Promise<JsonObject | undefined> {
  if (state.turn || state.lastTurnEventId === null) return undefined;
  const [ended] = await view.read(state.lastTurnEventId, 1);
  if (ended?.type !== "turn.ended") return undefined;
  return presentResult(view.id, ended.data, await readResultMessage(view, ended));
}

type EndOfTurn = Extract<StoredEvent, { type: "turn.ended" }>;

async function readResultMessage(view: SessionView, { data }: EndOfTurn): Promise<JsonObject> {
  const [event] = data.resultEventId === undefined ? [] : await view.read(data.resultEventId, 1);
  return event?.type === "message" ? event.data.message : {};
}

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
  readonly events: readonly ShownEvent[];
  /** The first id that was not read. */
  readonly next: number;
  /** Where there is something to read, when what `from` points at is gone. */
  readonly resetTo: number | undefined;
}

/** Events as a caller sees them; those that nobody needs are passed over. */
export async function readShown(view: SessionView, range: Range, last: LastTurn): Promise<ShownEvents> {
  const events: ShownEvent[] = [];
  let next = range.from;
  let first: number | undefined;
  for await (const event of eventsOf(view, range)) {
    first ??= event.id;
    next = event.id + 1;
    const shown = event.type === "turn.ended" ? await showEnd(view, event, last) : presentEvent(event);
    if (shown) events.push(shown);
    if (events.length === range.maxEvents) break;
  }
  const end = range.upTo + 1;
  if (events.length < range.maxEvents) next = Math.max(next, end);
  const begin = first ?? Math.max(range.from, end);
  return { events, next, resetTo: begin > range.from ? begin : undefined };
}

const PAGE = 200;

async function* eventsOf(view: SessionView, { from, upTo }: Range): AsyncGenerator<StoredEvent> {
  let next = from;
  while (next <= upTo) {
    const page = await view.read(next, Math.min(PAGE, upTo - next + 1));
    const last = page.at(-1);
    if (!last) return;
    yield* page.filter(({ id }) => id <= upTo);
    next = last.id + 1;
  }
}

async function showEnd(view: SessionView, event: EndOfTurn, last: LastTurn): Promise<ShownEvent> {
  const told = event.id === last.eventId ? last.result : undefined;
  const data = told ? briefly(told) : presentResult(view.id, event.data, await readResultMessage(view, event));
  return { id: event.id, type: typeOfEnd(event.data), data, timestamp: new Date(event.at).toISOString() };
}
