import type { JsonObject } from "../../domain/json.ts";
import { fitActions, type Asked } from "./action.ts";
import type { ShownEvent } from "./event.ts";
import { EXPENDABLE_OF_RESULT, SEE_RESULT } from "./result.ts";
import { fit, jsonBytes } from "./size.ts";

/**
 * The answer of claude_code_check within its budget. The result and the open requests come first, cut where they must
 * be; the events follow in order as far as there is room. What is not shown is read with `nextCursor`, so the first
 * event always goes out, and a caller always gets on.
 */

export interface CheckMaterial {
  /** What stands before and after the events: small, and never cut. */
  readonly head: JsonObject;
  readonly tail: JsonObject;
  /** In order; those that nobody needs are left out already. */
  readonly events: readonly ShownEvent[];
  /** The first id that has not been read, and whether there is an event with it. */
  readonly end: number;
  readonly more: boolean;
  readonly asked: readonly Asked[];
  readonly result: JsonObject | undefined;
  readonly now: number;
}

export interface CheckAnswer {
  readonly answer: JsonObject;
  /** The requests that this answer shows, and whether their input is uncut. */
  readonly shown: { requestId: string; whole: boolean }[];
}

/** What may be missing, by the name it has in `truncatedFields`. */
const FIELDS = ["events", "events[].data", "actions", "actions[].input", "result"];

export function assembleCheck(material: CheckMaterial, maxBytes: number): CheckAnswer {
  const { head, tail, asked } = material;
  const frame = { truncated: true, truncatedFields: FIELDS, events: [], nextCursor: Number.MAX_SAFE_INTEGER };
  const room = maxBytes - jsonBytes({ ...head, ...frame, actions: [], result: {}, ...tail });
  const wanted = material.events.reduce((sum, event) => sum + jsonBytes(event) + 1, 0);
  const first = room - Math.min(wanted, Math.floor(room / 4));

  const actions = fitActions(asked, material.now, first);
  const actionBytes = actions.reduce((sum, { action }) => sum + jsonBytes(action) + 1, 0);
  const result = material.result && fit(material.result, first - actionBytes, EXPENDABLE_OF_RESULT);
  const resultBytes = result === undefined ? 0 : jsonBytes(result.value);
  const events = takeEvents(material, room - actionBytes - resultBytes);

  const nextCursor = events.next ?? material.end;
  const missing = [
    events.next !== undefined || material.more,
    events.cut,
    actions.length < asked.length,
    actions.some(({ whole }) => !whole),
    result?.cut === true,
  ];
  const truncatedFields = FIELDS.filter((_, index) => missing[index] === true);
  const answer = {
    ...head,
    ...(truncatedFields.length > 0 && { truncated: true, truncatedFields }),
    events: events.taken,
    nextCursor,
    ...(actions.length > 0 && { actions: actions.map(({ action }) => action) }),
    ...(result && { result: result.value }),
    ...tail,
  };
  return { answer, shown: actions.map(({ requestId, whole }) => ({ requestId, whole })) };
}

interface Taken {
  readonly taken: readonly ShownEvent[];
  readonly cut: boolean;
  /** The first event that there was no room for. */
  readonly next: number | undefined;
}

function takeEvents({ events, result }: CheckMaterial, room: number): Taken {
  const taken: ShownEvent[] = [];
  let left = room;
  for (const [index, each] of events.entries()) {
    const event = saysAgain(each, result) ? seeResult(each) : each;
    const bytes = jsonBytes(event) + 1;
    if (bytes > left) {
      if (taken.length > 0) return { taken, cut: false, next: event.id };
      return { taken: [cutEvent(event, left - 1)], cut: true, next: events[index + 1]?.id };
    }
    left -= bytes;
    if (event.type === "result" || event.type === "error") {
      const said = taken.findLastIndex((earlier) => saysAgain(earlier, event.data));
      const spoken = taken[said];
      if (spoken) taken[said] = seeResult(spoken);
    }
    taken.push(event);
  }
  return { taken, cut: false, next: undefined };
}

function cutEvent(event: ShownEvent, most: number): ShownEvent {
  const around = jsonBytes({ ...event, data: {} }) - 2;
  return { ...event, data: fit(event.data, most - around, EXPENDABLE_OF_RESULT).value };
}

/** Whether an output is the very text of the result; a short one is clearer as it stands. */
function saysAgain({ type, data }: ShownEvent, result: JsonObject | undefined): boolean {
  const { text } = data;
  return (
    type === "output" && typeof text === "string" && text.length > SEE_RESULT.length && text === result?.["result"]
  );
}

function seeResult(event: ShownEvent): ShownEvent {
  return { ...event, data: { ...event.data, text: SEE_RESULT } };
}
