import type { JsonObject } from "../../domain/json.ts";
import type { ResponseMode, ShownEvent } from "./event.ts";

/**
 * In which form a session is told, and the one rule by which its events become a list. In mode minimal a tool call and
 * its outcome are one event when both are in the list; an outcome whose call was told before is told by itself.
 */

/** What of an answer is wanted. */
export interface Include {
  readonly tools: boolean;
  readonly events: boolean;
  readonly actions: boolean;
  readonly result: boolean;
  readonly usage: boolean;
  readonly modelUsage: boolean;
  readonly structuredOutput: boolean;
  readonly terminalEvents: boolean;
  readonly progressEvents: boolean;
}

export interface Form {
  readonly mode: ResponseMode;
  readonly include: Include;
}

/** What one more event makes of the list. */
export interface Told {
  /** Calls in the list that now have their outcome, by place. */
  readonly ended: readonly (readonly [place: number, event: ShownEvent])[];
  /** What is told by itself. */
  readonly rest: ShownEvent | undefined;
}

export function tell(list: readonly ShownEvent[], event: ShownEvent, { mode, include }: Form): Told {
  const { ended, rest } = mode === "minimal" ? endCalls(list, event) : { ended: [], rest: event };
  return { ended, rest: rest && isWanted(rest, include) ? rest : undefined };
}

export function changesNothing({ ended, rest }: Told): boolean {
  return ended.length === 0 && rest === undefined;
}

/** The list with the event told. */
export function applyTold(list: ShownEvent[], { ended, rest }: Told): void {
  for (const [place, event] of ended) list[place] = event;
  if (rest) list.push(rest);
}

function isWanted({ type }: ShownEvent, { progressEvents, terminalEvents }: Include): boolean {
  if (type === "progress") return progressEvents;
  return type === "result" || type === "error" ? terminalEvents : true;
}

function endCalls(list: readonly ShownEvent[], event: ShownEvent): Told {
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
function partsOf(data: JsonObject): JsonObject[] {
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
function endCall({ toolUseId, ...call }: JsonObject, outcome: JsonObject, outcomeId: number): JsonObject {
  const { ok, output, outputCut } = outcome;
  // What a file holds that was read is not what somebody needs who follows the work.
  const isHidden = call["tool"] === "Read" && ok === true;
  return {
    ...call,
    ...(call["tool"] === "Agent" && { toolUseId }),
    ok,
    ...(output !== undefined && output !== "" && !isHidden && { output }),
    ...((isHidden || outputCut === true) && { outputEventId: outcomeId }),
  };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null;
}
