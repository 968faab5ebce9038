import { CALLER } from "../domain/approvals/answer-source.ts";
import type { JsonObject } from "../domain/json.ts";
import { type PermissionRequest, type OpenRequest } from "../domain/permission.ts";
import type { ResponseMode } from "./event.ts";
import { fit, jsonBytes, waterLevel } from "./size.ts";
import { summaryOf } from "./summary.ts";

/** Pending requests, as `actions[]` of an answer lists them. */

export interface ShownRequest {
  readonly requestId: string;
  readonly toolUseId: string;
  /** As `actions[]` shows it. */
  readonly entry: JsonObject;
  /** True when the tool's input is shown uncut: only then may it be replaced. */
  readonly whole: boolean;
}

export interface PendingRequest {
  readonly open: OpenRequest;
  readonly request: PermissionRequest;
}

/** With less room than this a request is left for the next poll. */
const LEAST_BYTES = 600;
/** However large the rest is, so much of the input is shown. */
const INPUT_LEAST = 256;
/** The keys around the input, the mark that it is cut, the event that has it whole, and commas. */
const AROUND_INPUT = jsonBytes({ input: 0, inputTruncated: true, inputEventId: Number.MAX_SAFE_INTEGER });

/** In which form, and as of when. */
export interface Presentation {
  readonly mode: ResponseMode;
  readonly now: number;
}

function presentRequest({ open, request }: PendingRequest, { mode, now }: Presentation): JsonObject {
  const isMinimal = mode === "minimal";
  return {
    type: request.kind,
    requestId: request.requestId,
    toolName: request.toolName,
    input: request.input,
    ...(!isMinimal && { summary: summaryOf(request.toolName, request.input) }),
    ...(request.decisionReason !== undefined && { decisionReason: request.decisionReason }),
    ...(request.blockedPath !== undefined && { blockedPath: request.blockedPath }),
    // What its agent does is told with it.
    ...((!isMinimal || request.toolName === "Agent") && { toolUseID: request.toolUseId }),
    ...(request.agentId !== undefined && { agentID: request.agentId }),
    ...(!isMinimal && request.suggestions !== undefined && { suggestions: request.suggestions }),
    ...(request.risk && {
      risk: isMinimal && request.risk.why.length === 0 ? { level: request.risk.level } : request.risk,
    }),
    ...waitsFor(open, { mode, now }),
    ...(!isMinimal && {
      createdAt: new Date(open.createdAt).toISOString(),
      expiresAt: new Date(open.expiresAt).toISOString(),
    }),
    remainingMs: Math.max(0, open.expiresAt - now),
  };
}

/** A request that another approver has is not yet the caller's to allow. */
function waitsFor(open: OpenRequest, { mode, now }: Presentation): JsonObject {
  const approver = open.approver;
  if (approver === CALLER) return {};
  const until = open.approverDeadline;
  const time =
    mode === "minimal" ? { waitsMs: Math.max(0, until - now) } : { waitsUntil: new Date(until).toISOString() };
  return { waitsFor: approver, ...time };
}

/** What the requests take when each is shown whole, a comma each included. */
export function wholeRequestSizes(asked: readonly PendingRequest[], presentation: Presentation): number[] {
  return asked.map((each) => jsonBytes(presentRequest(each, presentation)) + 1);
}

/** As many of the requests as `most` bytes hold, a comma each included: small ones whole, the others cut alike. */
export function fitRequests(
  asked: readonly PendingRequest[],
  presentation: Presentation,
  most: number,
): ShownRequest[] {
  const sizes = wholeRequestSizes(asked, presentation);
  const shown: ShownRequest[] = [];
  let left = most;
  for (const [index, each] of asked.entries()) {
    const least = Math.min(sizes[index] ?? 0, LEAST_BYTES);
    const share = Math.max(Math.min(waterLevel(sizes.slice(index), left), left), least);
    if (share > left) break;
    const next = fitRequest(each, presentation, share - 1);
    left -= jsonBytes(next.entry) + 1;
    shown.push(next);
  }
  return shown;
}

function fitRequest(asked: PendingRequest, presentation: Presentation, most: number): ShownRequest {
  const entry = presentRequest(asked, presentation);
  const { requestId, toolUseId } = asked.request;
  if (jsonBytes(entry) <= most) return { entry, requestId, toolUseId, whole: true };
  const { input: _, suggestions, ...bare } = entry;
  const room = most - AROUND_INPUT;
  const forRequest = room - Math.min(INPUT_LEAST, jsonBytes(asked.request.input));
  // A suggestion is there to be sent back: it is shown whole or not at all.
  const full = suggestions === undefined ? bare : { ...bare, suggestions };
  const request = jsonBytes(full) <= forRequest ? full : fit(bare, forRequest, ["decisionReason", "blockedPath"]).value;
  const input = fit(asked.request.input, room - jsonBytes(request));
  const mark = { inputTruncated: true, inputEventId: asked.open.eventId };
  const shown = { ...request, input: input.value, ...(input.cut && mark) };
  return { entry: shown, requestId, toolUseId, whole: !input.cut };
}
