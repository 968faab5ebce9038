import type { NoticeKind } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { ResponseMode, ShownEvent } from "./event.ts";

/**
 * Adds events to a list, in the form that the caller wants. In mode `minimal` a tool call, the text before the call and the
 * outcome become a single event. An outcome stays an event of its own if an earlier answer had the call.
 */

/** Parts of the answer to include. */
export interface Include {
  readonly tools: boolean;
  readonly events: boolean;
  readonly actions: boolean;
  readonly result: boolean;
  /** "short": only cost and tokens. */
  readonly usage: boolean | "short";
  readonly modelUsage: boolean;
  readonly structuredOutput: boolean;
  readonly terminalEvents: boolean;
  readonly progressEvents: boolean;
}

export interface ListForm {
  readonly mode: ResponseMode;
  readonly include: Include;
  /** Id of the request answered by this call. */
  readonly answered?: string;
}

/** Change of the list by one further event. */
export interface ListChange {
  /** Replacements in the list, by index: a call with its outcome, or a text with its call. */
  readonly replacements: readonly (readonly [place: number, event: ShownEvent])[];
  /** Event to append. */
  readonly appended: ShownEvent | undefined;
}

export function changeFor(list: readonly ShownEvent[], event: ShownEvent, { mode, include }: ListForm): ListChange {
  const updated = mode === "full" ? undefined : replaceProgress(list, event);
  const change = updated ?? (mode === "minimal" ? mergeEvent(list, event) : { replacements: [], appended: event });
  const { appended, replacements } = change;
  return { replacements, appended: appended && isWanted(appended, include) ? appended : undefined };
}

export function changesNothing({ appended, replacements }: ListChange): boolean {
  return replacements.length === 0 && appended === undefined;
}

/** Applies the change to `list`. */
export function applyChange(list: ShownEvent[], { appended, replacements }: ListChange): void {
  for (const [place, event] of replacements) list[place] = event;
  if (appended) list.push(appended);
}

function isWanted({ type }: ShownEvent, { progressEvents, terminalEvents }: Include): boolean {
  if (type === "progress") return progressEvents;
  return type === "result" || type === "error" ? terminalEvents : true;
}

/**
 * Replaces the last notice if `event` differs only in its numbers: the progress of an installation, or of the retries of a
 * request.
 */
function replaceProgress(list: readonly ShownEvent[], event: ShownEvent): ListChange | undefined {
  const key = progressKey(event);
  if (key === undefined || progressKey(list.at(-1)) !== key) return undefined;
  return { replacements: [[list.length - 1, event]], appended: undefined };
}

/**
 * Kinds of notices that report progress. A notice of another kind is news, even if it differs from the last one only in a
 * number.
 */
const PROGRESS_KINDS: readonly unknown[] = ["retry", "waiting"] satisfies NoticeKind[];

function progressKey(event: ShownEvent | undefined): string | undefined {
  const { message, notice } = event?.data ?? {};
  return typeof message === "string" && PROGRESS_KINDS.includes(notice) ? message.replaceAll(/\d+/g, "#") : undefined;
}

function mergeEvent(list: readonly ShownEvent[], event: ShownEvent): ListChange {
  return joinTextAndCall(list, event) ?? endCalls(list, event);
}

/**
 * Joins a text and the tool call after it. Claude Code sends them one by one, but both belong to a single response of the
 * model.
 */
function joinTextAndCall(list: readonly ShownEvent[], { data, id, type }: ShownEvent): ListChange | undefined {
  const last = list.at(-1);
  if (last?.type !== "output" || type !== "output") return undefined;
  const { agentId, text, ...beside } = last.data;
  const isTextOnly = text !== undefined && Object.keys(beside).length === 0;
  if (!isTextOnly || data["tool"] === undefined || data["text"] !== undefined || data["agentId"] !== agentId)
    return undefined;
  const [call, ...others] = partsOf(data).map((part) => callOfEvent(part, id));
  const joined = { text, ...call, ...(others.length > 0 && { others }) };
  return { replacements: [[list.length - 1, { ...last, data: joined }]], appended: undefined };
}

/** Prepares a call for showing under the id of another event: `inputEventId` is the event with the full input. */
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
  if (ended.size === 0) return { replacements: [], appended: event };
  const [first, ...others] = left;
  const { agentId } = event.data;
  const beside = { ...(others.length > 0 && { others }), ...(agentId !== undefined && { agentId }) };
  const appended = first && { ...event, data: { ...first, ...beside } };
  return { replacements: [...ended], appended };
}

/** Returns all calls, or all outcomes, of an event: the first is in the event itself, the rest in `others`. */
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

/** Adds the outcome to a call. Only an Agent call keeps `toolUseId`, because events of its subagent refer to the id. */
export function endCall({ toolUseId, ...call }: JsonObject, outcome: JsonObject, outcomeId: number): JsonObject {
  const { ok, output, outputCut } = outcome;
  // The content of a file is not needed to follow the work.
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
