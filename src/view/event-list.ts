import type { NoticeKind } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { ResponseMode, ShownEvent } from "./event.ts";

/**
 * In which form a session is told, and the one rule by which its events become a list. In mode minimal a tool call, what
 * is said with it and its outcome are one event when they are in the list; an outcome whose call was told before is told
 * by itself.
 */

/** What of an answer is wanted. */
export interface Include {
  readonly tools: boolean;
  readonly events: boolean;
  readonly actions: boolean;
  readonly result: boolean;
  /** short: cost and tokens in place of all that was counted. */
  readonly usage: boolean | "short";
  readonly modelUsage: boolean;
  readonly structuredOutput: boolean;
  readonly terminalEvents: boolean;
  readonly progressEvents: boolean;
}

export interface Form {
  readonly mode: ResponseMode;
  readonly include: Include;
  /** The request that the caller has answered with this very call. */
  readonly answered?: string;
}

/** What one more event makes of the list. */
export interface ListChange {
  /** What is in the list and has become more, by place: a call with its outcome, words with their call. */
  readonly ended: readonly (readonly [place: number, event: ShownEvent])[];
  /** What is told by itself. */
  readonly rest: ShownEvent | undefined;
}

export function changeFor(list: readonly ShownEvent[], event: ShownEvent, { mode, include }: Form): ListChange {
  const updated = mode === "full" ? undefined : updateNotice(list, event);
  const { ended, rest } = updated ?? (mode === "minimal" ? inBrief(list, event) : { ended: [], rest: event });
  return { ended, rest: rest && isWanted(rest, include) ? rest : undefined };
}

export function changesNothing({ ended, rest }: ListChange): boolean {
  return ended.length === 0 && rest === undefined;
}

/** The list with the event told. */
export function applyChange(list: ShownEvent[], { ended, rest }: ListChange): void {
  for (const [place, event] of ended) list[place] = event;
  if (rest) list.push(rest);
}

function isWanted({ type }: ShownEvent, { progressEvents, terminalEvents }: Include): boolean {
  if (type === "progress") return progressEvents;
  return type === "result" || type === "error" ? terminalEvents : true;
}

/** Updates how far an installation or the retries of a request are: a notice that differs only in its numbers takes the place of the last. */
function updateNotice(list: readonly ShownEvent[], event: ShownEvent): ListChange | undefined {
  const standing = standingOf(event);
  if (standing === undefined || standingOf(list.at(-1)) !== standing) return undefined;
  return { ended: [[list.length - 1, event]], rest: undefined };
}

/** Kinds of notices that say how far something is; two others that differ in a number are two pieces of news. */
const STANDINGS: readonly unknown[] = ["retry", "waiting"] satisfies NoticeKind[];

function standingOf(event: ShownEvent | undefined): string | undefined {
  const { message, notice } = event?.data ?? {};
  return typeof message === "string" && STANDINGS.includes(notice) ? message.replaceAll(/\d+/g, "#") : undefined;
}

function inBrief(list: readonly ShownEvent[], event: ShownEvent): ListChange {
  return joinWords(list, event) ?? endCalls(list, event);
}

/** Claude Code sends what it says and what it calls with that one by one; it is one answer of its model. */
function joinWords(list: readonly ShownEvent[], { data, id, type }: ShownEvent): ListChange | undefined {
  const last = list.at(-1);
  if (last?.type !== "output" || type !== "output") return undefined;
  const { agentId, text, ...beside } = last.data;
  const isWords = text !== undefined && Object.keys(beside).length === 0;
  if (!isWords || data["tool"] === undefined || data["text"] !== undefined || data["agentId"] !== agentId)
    return undefined;
  const [call, ...others] = partsOf(data).map((part) => callOfEvent(part, id));
  const joined = { text, ...call, ...(others.length > 0 && { others }) };
  return { ended: [[list.length - 1, { ...last, data: joined }]], rest: undefined };
}

/** Of a call that is told under the id of another event: which event has the input whole that was cut. */
export function callOfEvent({ inputCut, ...call }: JsonObject, eventId: number): JsonObject {
  return { ...call, ...(inputCut === true && { inputEventId: eventId }) };
}

function endCalls(list: readonly ShownEvent[], event: ShownEvent): ListChange {
  const outcomes = event.type === "progress" ? partsOf(event.data) : [];
  const ended = new Map<number, ShownEvent>();
  const left = outcomes.filter((outcome) => {
    const place = list.findLastIndex(({ type, data }) => type === "output" && calls(data, outcome["toolUseId"]));
    const call = ended.get(place) ?? list[place];
    if (call) ended.set(place, { ...call, data: withOutcome(call.data, outcome, event.id) });
    return call === undefined;
  });
  if (ended.size === 0) return { ended: [], rest: event };
  const [first, ...others] = left;
  const { agentId } = event.data;
  const beside = { ...(others.length > 0 && { others }), ...(agentId !== undefined && { agentId }) };
  const rest = first && { ...event, data: { ...first, ...beside } };
  return { ended: [...ended], rest };
}

/** An event of several calls, or of several outcomes, has the others in a list beside the first. */
export function partsOf(data: JsonObject): JsonObject[] {
  const { others, ...first } = data;
  const further: unknown[] = Array.isArray(others) ? others : [];
  return [first, ...further.filter(isObject)];
}

function calls(data: JsonObject, toolUseId: unknown): boolean {
  return toolUseId !== undefined && partsOf(data).some((part) => part["toolUseId"] === toolUseId);
}

function withOutcome(data: JsonObject, outcome: JsonObject, outcomeId: number): JsonObject {
  const { toolUseId } = outcome;
  if (data["toolUseId"] === toolUseId) return endCall(data, outcome, outcomeId);
  const others = partsOf(data).slice(1);
  return {
    ...data,
    others: others.map((part) => (part["toolUseId"] === toolUseId ? endCall(part, outcome, outcomeId) : part)),
  };
}

/** The id is for what is still to come: an outcome, or the events of a subagent. */
export function endCall({ toolUseId, ...call }: JsonObject, outcome: JsonObject, outcomeId: number): JsonObject {
  const { ok, output, outputCut } = outcome;
  // The content of a file that was read is not needed to follow the work.
  const isHidden = call["tool"] === "Read" && ok === true;
  return {
    ...call,
    ...(call["tool"] === "Agent" && { toolUseId }),
    ok,
    ...(output !== undefined && output !== "" && !isHidden && { output }),
    ...(!isHidden && outputCut === true && { outputEventId: outcomeId }),
  };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null;
}
