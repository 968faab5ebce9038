import type { JsonObject } from "../../domain/json.ts";
import { fitActions, type Asked } from "./action.ts";
import type { ShownEvent } from "./event.ts";
import { EXPENDABLE_OF_RESULT, SEE_RESULT } from "./result.ts";
import { fit, fitList, jsonBytes } from "./size.ts";
import { applyTold, tell, type Form } from "./telling.ts";

/**
 * What claude_code_check tells of one session within its budget. The result and the open requests come first, cut where
 * they must be; the events follow in order as far as there is room. What is not shown is read with `nextCursor`, so the
 * first event always goes out, and a caller always gets on.
 */

export interface CheckMaterial {
  readonly form: Form;
  /** What stands before and after the events: small, and never cut. */
  readonly head: JsonObject;
  readonly tail: JsonObject;
  /** Cut to a small part of the answer each, by name. */
  readonly lists: Readonly<Partial<Record<"background" | "availableTools", readonly JsonObject[]>>>;
  /** In order, each by itself; those that nobody needs are left out already. */
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
const FIELDS = ["events", "events[].data", "actions", "actions[].input", "result", "background", "availableTools"];
/** What a list may take of the room, whatever else there is to tell. */
const LIST_PART = { background: 1 / 8, availableTools: 1 / 4 };

export function assembleCheck(material: CheckMaterial, maxBytes: number): CheckAnswer {
  const { head, tail, asked } = material;
  const frame = { truncated: true, truncatedFields: FIELDS, events: [], nextCursor: Number.MAX_SAFE_INTEGER };
  const whole = maxBytes - jsonBytes({ ...head, ...frame, actions: [], result: {}, ...tail });
  const lists = takeLists(material, whole);
  const room = whole - lists.bytes;
  const wanted = material.events.reduce((sum, event) => sum + jsonBytes(event) + 1, 0);
  const first = room - Math.min(wanted, Math.floor(room / 4));

  const actions = fitActions(asked, material.now, first);
  const actionBytes = actions.reduce((sum, { action }) => sum + jsonBytes(action) + 1, 0);
  const result = material.result && fit(material.result, first - actionBytes, EXPENDABLE_OF_RESULT);
  const resultBytes = result === undefined ? 0 : jsonBytes(result.value);
  const listed = new Map(actions.map(({ action, requestId }) => [requestId, action["toolUseID"]]));
  const events = takeEvents(material, listed, room - actionBytes - resultBytes);

  const missing = [
    events.next !== undefined || material.more,
    events.cut,
    actions.length < asked.length,
    actions.some(({ whole: shown }) => !shown),
    result?.cut === true,
    lists.cut.includes("background"),
    lists.cut.includes("availableTools"),
  ];
  const truncatedFields = FIELDS.filter((_, index) => missing[index] === true);
  const answer = {
    ...head,
    ...(truncatedFields.length > 0 && { truncated: true, truncatedFields }),
    events: events.taken,
    nextCursor: events.next ?? material.end,
    ...(actions.length > 0 && { actions: actions.map(({ action }) => action) }),
    ...lists.taken,
    ...(result && { result: result.value }),
    ...tail,
  };
  return { answer, shown: actions.map(({ requestId, whole: shown }) => ({ requestId, whole: shown })) };
}

interface TakenLists {
  readonly taken: JsonObject;
  readonly cut: readonly string[];
  readonly bytes: number;
}

function takeLists({ lists }: CheckMaterial, room: number): TakenLists {
  const fitted = (["background", "availableTools"] as const).flatMap((name) => {
    const list = lists[name] ?? [];
    if (list.length === 0) return [];
    const value = fitList(list, Math.floor(room * LIST_PART[name]), "description");
    return [{ name, value, cut: value.length < list.length }];
  });
  const taken = Object.fromEntries(fitted.map(({ name, value }) => [name, value]));
  const cut = fitted.filter((each) => each.cut).map(({ name }) => name);
  // The braces of the measured object make up for the comma before it.
  return { taken, cut, bytes: fitted.length === 0 ? 0 : jsonBytes(taken) };
}

interface Taken {
  readonly taken: readonly ShownEvent[];
  readonly cut: boolean;
  /** The first event that there was no room for. */
  readonly next: number | undefined;
}

/** The requests that the answer lists, and the tool calls they are of. */
type Listed = ReadonlyMap<string, unknown>;
const NONE: Listed = new Map();

function takeEvents({ events, form, result }: CheckMaterial, listed: Listed, room: number): Taken {
  const taken: ShownEvent[] = [];
  let left = room;
  for (const [index, each] of events.entries()) {
    const event = withoutRepeats(each, form.mode === "minimal" ? listed : NONE, result);
    const told = tell(taken, event, form);
    const bytes = told.ended.reduce(
      (sum, [place, ended]) => sum + jsonBytes(ended) - jsonBytes(taken[place]),
      told.rest ? jsonBytes(told.rest) + 1 : 0,
    );
    if (bytes > left) {
      if (taken.length > 0) return { taken, cut: false, next: event.id };
      return { taken: [cutEvent(event, left - 1)], cut: true, next: events[index + 1]?.id };
    }
    left -= bytes;
    applyTold(taken, told);
    if (event.type === "result" || event.type === "error") pointToEnd(taken, event);
  }
  return { taken, cut: false, next: undefined };
}

function cutEvent(event: ShownEvent, most: number): ShownEvent {
  const around = jsonBytes({ ...event, data: {} }) - 2;
  return { ...event, data: fit(event.data, most - around, EXPENDABLE_OF_RESULT).value };
}

/** An event without what the same answer says in its result or its actions. */
function withoutRepeats(event: ShownEvent, listed: Listed, result: JsonObject | undefined): ShownEvent {
  if (saysAgain(event, result)) return seeResult(event);
  const { requestId, toolUseId } = event.data;
  if (event.type === "permission_request" && typeof requestId === "string" && listed.has(requestId)) {
    return { ...event, data: { requestId } };
  }
  const isAsked = event.type === "output" && toolUseId !== undefined && [...listed.values()].includes(toolUseId);
  if (!isAsked) return event;
  const { input: _, inputCut: __, ...data } = event.data;
  return { ...event, data };
}

/** The end of an earlier turn repeats what was said last in it. */
function pointToEnd(taken: ShownEvent[], { data }: ShownEvent): void {
  const said = taken.findLastIndex((earlier) => saysAgain(earlier, data));
  const spoken = taken[said];
  if (spoken && taken.at(-1)?.data === data) taken[said] = seeResult(spoken);
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
