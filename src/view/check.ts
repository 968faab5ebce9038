import type { JsonObject } from "../domain/json.ts";
import { fitRequests, wholeRequestSizes, type PendingRequest } from "./pending-request.ts";
import type { ShownEvent } from "./event.ts";
import { EXPENDABLE_OF_RESULT, SEE_RESULT } from "./result.ts";
import { fit, fitList, jsonBytes } from "./size.ts";
import { applyChange, changeFor, partsOf, type ListForm } from "./event-list.ts";

/**
 * Builds the answer of `claude_code_check` for a session within its byte budget. Open requests come first, in full if possible,
 * then the result, cut if necessary; events follow in order as far as they fit. The caller reads the rest with `nextCursor`.
 * The first event is always included, so that a caller always gets on.
 */

export interface CheckMaterial {
  readonly form: ListForm;
  /** `head` and `tail` stand before and after the events. Both are small and never cut. */
  readonly head: JsonObject;
  readonly tail: JsonObject;
  /** Lists by name, each cut to a small share of the answer (`LIST_PART`). */
  readonly lists: Readonly<Partial<Record<"background" | "availableTools", readonly JsonObject[]>>>;
  /** Single events in order, without those hidden from callers. */
  readonly events: readonly ShownEvent[];
  /** `end` is the first id not read; `more` is true if an event with the id `end` exists. */
  readonly end: number;
  readonly more: boolean;
  readonly asked: readonly PendingRequest[];
  readonly result: JsonObject | undefined;
  /** Event with the full result. */
  readonly resultEventId: number | null;
  readonly now: number;
}

export interface CheckAnswer {
  readonly answer: JsonObject;
  /** Requests shown by the answer; `whole` is true if the input is uncut. */
  readonly shown: { requestId: string; whole: boolean }[];
}

/** Parts that may be missing, by their names in `truncatedFields`. */
const FIELDS = ["events", "events[].data", "actions", "actions[].input", "result", "background", "availableTools"];
/** Maximum share of the room for each list. */
const LIST_PART = { background: 1 / 8, availableTools: 1 / 4 };
/** Minimum bytes for the events, and for `result`, beside large requests. */
const [EVENTS_LEAST, RESULT_LEAST] = [256, 128];

export function assembleCheck(material: CheckMaterial, maxBytes: number): CheckAnswer {
  const { head, tail, asked, form } = material;
  const rendering = { mode: form.mode, now: material.now };
  const most = Number.MAX_SAFE_INTEGER;
  // Other modes show the end of the turn as an event with an id.
  const whole = (id: number | null) => (form.mode === "minimal" && material.result ? { resultEventId: id } : {});
  const frame = { truncated: true, truncatedFields: FIELDS, events: [], nextCursor: most, ...whole(most) };
  const given = maxBytes - jsonBytes({ ...head, ...frame, actions: [], result: {}, ...tail });
  const lists = takeLists(material, given);
  const room = given - lists.bytes;
  const wanted = material.events.reduce((sum, event) => sum + jsonBytes(event) + 1, 0);
  const first = room - Math.min(wanted, Math.floor(room / 4));
  const forResult = material.result ? Math.min(jsonBytes(material.result), RESULT_LEAST) : 0;
  const ample = room - Math.min(wanted, EVENTS_LEAST) - forResult;
  const isAmple = wholeRequestSizes(asked, rendering).reduce((sum, bytes) => sum + bytes, 0) <= ample;

  const requests = fitRequests(asked, rendering, isAmple ? ample : first - forResult);
  const requestBytes = requests.reduce((sum, { entry }) => sum + jsonBytes(entry) + 1, 0);
  const forText = Math.max(first - requestBytes, forResult);
  const result = material.result && fit(material.result, forText, EXPENDABLE_OF_RESULT);
  const resultBytes = result === undefined ? 0 : jsonBytes(result.value);
  const listed = new Map(requests.map(({ requestId, toolUseId }) => [requestId, toolUseId]));
  const events = takeEvents(material, listed, room - requestBytes - resultBytes);

  const missing = [
    events.next !== undefined || material.more,
    events.cut,
    requests.length < asked.length,
    requests.some(({ whole: shown }) => !shown),
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
    ...(requests.length > 0 && { actions: requests.map(({ entry }) => entry) }),
    ...lists.taken,
    ...(result && { result: result.value }),
    ...(result?.cut && whole(material.resultEventId)),
    ...tail,
  };
  return { answer, shown: requests.map(({ requestId, whole: shown }) => ({ requestId, whole: shown })) };
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
  // The braces of the measured object make up for the comma before `taken`.
  return { taken, cut, bytes: fitted.length === 0 ? 0 : jsonBytes(taken) };
}

interface TakenEvents {
  readonly taken: readonly ShownEvent[];
  readonly cut: boolean;
  /** First event without room. */
  readonly next: number | undefined;
}

function takeEvents({ events, form, result }: CheckMaterial, listed: ListedRequests, room: number): TakenEvents {
  const taken: ShownEvent[] = [];
  const lastWords = form.mode === "minimal" ? lastWordsIn(events, result) : undefined;
  let left = room;
  for (const [index, each] of events.entries()) {
    const event = form.mode === "minimal" ? withoutListed(each, listed) : each;
    if (!event || each === lastWords) continue;
    const change = changeFor(taken, repeatsResult(event, result) ? seeResult(event) : event, form);
    const bytes = change.replacements.reduce(
      (sum, [place, ended]) => sum + jsonBytes(ended) - jsonBytes(taken[place]),
      change.appended ? jsonBytes(change.appended) + 1 : 0,
    );
    if (bytes > left) {
      if (taken.length > 0) return { taken, cut: false, next: event.id };
      return { taken: [cutEvent(event, left - 1)], cut: true, next: events[index + 1]?.id };
    }
    left -= bytes;
    applyChange(taken, change);
    if (event.type === "result" || event.type === "error") pointToEnd(taken, event);
  }
  return { taken, cut: false, next: undefined };
}

function cutEvent(event: ShownEvent, most: number): ShownEvent {
  const around = jsonBytes({ ...event, data: {} }) - 2;
  return { ...event, data: fit(event.data, most - around, EXPENDABLE_OF_RESULT).value };
}

/** Replaces the last output of an earlier turn by `SEE_RESULT` if the end of the turn repeats the text. */
function pointToEnd(taken: ShownEvent[], { data }: ShownEvent): void {
  const said = taken.findLastIndex((earlier) => repeatsResult(earlier, data));
  const spoken = taken[said];
  if (spoken && taken.at(-1)?.data === data) taken[said] = seeResult(spoken);
}

/** Removes repetitions between events and the result or the requests of an answer. */

/** `toolUseId` of each request in the answer, by `requestId`. */
export type ListedRequests = ReadonlyMap<string, string>;

/** Removes the parts of an event repeated in the requests of the answer. Returns `undefined` if nothing is left. */
function withoutListed(event: ShownEvent, listed: ListedRequests): ShownEvent | undefined {
  const { data, type } = event;
  if (type === "permission_request") return listed.has(String(data["requestId"])) ? undefined : event;
  if (type !== "output") return event;
  const asked = new Set<unknown>(listed.values());
  const parts = partsOf(data);
  const left = parts.filter(({ toolUseId }) => !asked.has(toolUseId));
  if (left.length === parts.length) return event;
  const { agentId, error, text } = data;
  const [first, ...others] = left;
  const said = { ...(text !== undefined && { text }), ...(error !== undefined && { error }) };
  if (!first && Object.keys(said).length === 0) return undefined;
  const beside = { ...(others.length > 0 && { others }), ...(agentId !== undefined && { agentId }) };
  return { ...event, data: { ...said, ...first, ...beside } };
}

/** Returns the last output if its text is equal to `result`. */
function lastWordsIn(events: readonly ShownEvent[], result: JsonObject | undefined): ShownEvent | undefined {
  const last = events.findLast(({ type }) => type === "output" || type === "result" || type === "error");
  if (!result || last?.type !== "output" || last.data["text"] !== result["result"]) return undefined;
  return Object.keys(last.data).length === 1 ? last : undefined;
}

/** True if an output repeats the text of the result. A text shorter than the reference (`SEE_RESULT`) stays. */
function repeatsResult({ type, data }: ShownEvent, result: JsonObject | undefined): boolean {
  const { text } = data;
  return (
    type === "output" && typeof text === "string" && text.length > SEE_RESULT.length && text === result?.["result"]
  );
}

function seeResult(event: ShownEvent): ShownEvent {
  return { ...event, data: { ...event.data, text: SEE_RESULT } };
}
