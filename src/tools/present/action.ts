import type { JsonObject } from "../../domain/json.ts";
import { rungOf, type Ask, type OpenAsk } from "../../domain/permission.ts";
import { fit, jsonBytes } from "./size.ts";
import { summaryOf } from "./summary.ts";

/** Requests that wait for a decision, as `actions[]` lists them. */

export interface ShownAction {
  readonly requestId: string;
  readonly action: JsonObject;
  /** True when the tool's input is shown uncut: only then may it be replaced. */
  readonly whole: boolean;
}

export interface Asked {
  readonly open: OpenAsk;
  readonly ask: Ask;
}

/** With less room than this an action is left for the next poll. */
const LEAST_BYTES = 600;
/** However large the rest is, so much of the input is shown. */
const INPUT_LEAST = 256;
/** The keys around the input, the mark that it is cut, the event that has it whole, and commas. */
const AROUND_INPUT = jsonBytes({ input: 0, inputTruncated: true, inputEventId: Number.MAX_SAFE_INTEGER });

function presentAction({ open, ask }: Asked, now: number): JsonObject {
  return {
    type: ask.kind,
    requestId: ask.requestId,
    toolName: ask.toolName,
    input: ask.input,
    summary: summaryOf(ask.toolName, ask.input),
    ...(ask.decisionReason !== undefined && { decisionReason: ask.decisionReason }),
    ...(ask.blockedPath !== undefined && { blockedPath: ask.blockedPath }),
    toolUseID: ask.toolUseId,
    ...(ask.agentId !== undefined && { agentID: ask.agentId }),
    ...(ask.suggestions !== undefined && { suggestions: ask.suggestions }),
    ...(ask.risk && { risk: ask.risk }),
    ...waitsFor(open),
    createdAt: new Date(open.createdAt).toISOString(),
    expiresAt: new Date(open.expiresAt).toISOString(),
    remainingMs: Math.max(0, open.expiresAt - now),
  };
}

/** A request that is with somebody else is not yet the caller's to allow. */
function waitsFor(open: OpenAsk): JsonObject {
  const rung = rungOf(open);
  const until = new Date(open.rungEndsAt ?? open.expiresAt).toISOString();
  return rung === "caller" ? {} : { waitsFor: rung, waitsUntil: until };
}

/** As many of the requests as `most` bytes hold, a comma each included; every one gets a fair part of the room. */
export function fitActions(asked: readonly Asked[], now: number, most: number): ShownAction[] {
  const shown: ShownAction[] = [];
  let left = most;
  for (const [index, each] of asked.entries()) {
    const share = Math.max(Math.floor(left / (asked.length - index)), LEAST_BYTES);
    if (share > left) break;
    const next = fitAction(each, now, share - 1);
    left -= jsonBytes(next.action) + 1;
    shown.push(next);
  }
  return shown;
}

function fitAction(asked: Asked, now: number, most: number): ShownAction {
  const action = presentAction(asked, now);
  if (jsonBytes(action) <= most) return { action, requestId: asked.ask.requestId, whole: true };
  const { input: _, suggestions, ...bare } = action;
  const room = most - AROUND_INPUT;
  const forRequest = room - Math.min(INPUT_LEAST, jsonBytes(asked.ask.input));
  // A suggestion is there to be sent back: it is shown whole or not at all.
  const full = suggestions === undefined ? bare : { ...bare, suggestions };
  const request = jsonBytes(full) <= forRequest ? full : fit(bare, forRequest, ["decisionReason", "blockedPath"]).value;
  const input = fit(asked.ask.input, room - jsonBytes(request));
  const mark = { inputTruncated: true, inputEventId: asked.open.eventId };
  const shown = { ...request, input: input.value, ...(input.cut && mark) };
  return { action: shown, requestId: asked.ask.requestId, whole: !input.cut };
}
