import { CALLER } from "../domain/approvals/answer-source.ts";
import type { JsonObject } from "../domain/json.ts";
import { type PermissionRequest, type OpenRequest } from "../domain/permission.ts";
import type { ResponseMode } from "./event.ts";
import { fit, jsonBytes, waterLevel } from "./size.ts";
import { summaryOf } from "./summary.ts";

/** Open requests in `actions[]` of an answer. */

export interface ShownRequest {
  readonly requestId: string;
  readonly toolUseId: string;
  /** Entry in `actions[]`. */
  readonly entry: JsonObject;
  /** True if the tool's input is shown uncut. Only then may the caller replace the input. */
  readonly whole: boolean;
}

export interface PendingRequest {
  readonly open: OpenRequest;
  readonly request: PermissionRequest;
}

/** Minimum room for a request, bytes. With less, the request is left to the next poll. */
const LEAST_BYTES = 600;
/** Minimum bytes for the input of a request, even if other fields are large. */
const INPUT_LEAST = 256;
/** Bytes of the keys around a cut input, commas included. */
const AROUND_INPUT = jsonBytes({ input: 0, inputTruncated: true, inputEventId: Number.MAX_SAFE_INTEGER });

/** Response mode, and present time in ms since the epoch. */
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
    // Events of the subagent refer to `toolUseId`.
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

/** Names the approver (`waitsFor`) and the time until the next approver, if the caller may not answer yet. */
function waitsFor(open: OpenRequest, { mode, now }: Presentation): JsonObject {
  const approver = open.approver;
  if (approver === CALLER) return {};
  const until = open.approverDeadline;
  const time =
    mode === "minimal" ? { waitsMs: Math.max(0, until - now) } : { waitsUntil: new Date(until).toISOString() };
  return { waitsFor: approver, ...time };
}

/** Returns the size of each request shown in full, bytes with a comma. */
export function wholeRequestSizes(asked: readonly PendingRequest[], presentation: Presentation): number[] {
  return asked.map((each) => jsonBytes(presentRequest(each, presentation)) + 1);
}

/** Fits requests into `most` bytes, commas included: small requests in full, the rest cut to an equal size. */
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
  // `suggestions` are meant to be sent back, so they are shown in full or not at all.
  const full = suggestions === undefined ? bare : { ...bare, suggestions };
  const request = jsonBytes(full) <= forRequest ? full : fit(bare, forRequest, ["decisionReason", "blockedPath"]).value;
  const input = fit(asked.request.input, room - jsonBytes(request));
  const mark = { inputTruncated: true, inputEventId: asked.open.eventId };
  const shown = { ...request, input: input.value, ...(input.cut && mark) };
  return { entry: shown, requestId, toolUseId, whole: !input.cut };
}
