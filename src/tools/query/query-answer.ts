import type { JsonObject } from "../../domain/json.ts";
import { readOpenRequests, failureOf } from "../blocking/outcome.ts";
import type { FollowEnd } from "../blocking/follow.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import { fit, jsonBytes } from "../../view/size.ts";
import { briefVerification } from "../../view/verification.ts";
import { readEnd, type ReadableSession } from "../readable-session.ts";
import type { LastMessages } from "./last-messages.ts";

/** Builds the answer of `claude_code_query`, with the position for reading on. */

/** Divisor: share of the answer reserved for everything except messages. */
export const REST_SHARE = 4;
/** Fields to cut first if the reserved share is too small. */
const EXPENDABLE = ["modelUsage", "usage"];

interface Query {
  /** Fields known before the end of the query. */
  readonly head: JsonObject & { readonly warnings?: readonly string[] };
  readonly bundle: LastMessages;
  readonly left: FollowEnd;
  readonly cursor: number;
  readonly maxBytes: number;
}

export async function answerQuery(
  query: Query,
  view: ReadableSession,
  call: ToolCall,
  deps: ToolDeps,
): Promise<JsonObject> {
  const { bundle, cursor, head, left, maxBytes } = query;
  const room = Math.floor(maxBytes / REST_SHARE);
  const more =
    bundle.omitted > 0 ? { resource: `claude-code://sessions/${view.id}/events?cursor=${String(cursor)}` } : {};
  const known = { ...head, ...more, totalMessages: bundle.total, omitted: bundle.omitted };
  if (left.why === "asked") {
    const maxRequestBytes = Math.max(room - jsonBytes(known) - AROUND_REQUESTS, 0);
    return {
      ...known,
      ...(await readWaiting(left, view, { maxBytes: maxRequestBytes, call, deps })),
      messages: bundle.messages,
    };
  }
  const warnings = [...(head.warnings ?? []), ...(left.why === "ended" ? (left.end.data.warnings ?? []) : [])];
  const warned = warnings.length > 0 ? { warnings } : {};
  const { cut, value } = fit({ ...known, ...warned, ...(await readOutcome(left, view)) }, room, EXPENDABLE);
  return { ...value, ...(cut && { truncated: true }), messages: bundle.messages };
}

/** Bytes of JSON around the open requests. */
const AROUND_REQUESTS = 512;

interface AnswerContext {
  readonly maxBytes: number;
  readonly call: ToolCall;
  readonly deps: ToolDeps;
}

async function readWaiting(
  { nextCursor: cursor }: Extract<FollowEnd, { why: "asked" }>,
  view: ReadableSession,
  { call, deps, maxBytes }: AnswerContext,
): Promise<JsonObject> {
  const requests = await readOpenRequests(view, { cursor, maxBytes }, call, deps);
  const summary = "Claude Code is waiting for a decision; the turn continues after it.";
  return { ...requests, result: { success: false, summary, error: "waiting_permission" } };
}

async function readOutcome(left: Exclude<FollowEnd, { why: "asked" }>, view: ReadableSession): Promise<JsonObject> {
  if (left.why === "ended") return readTurnEnd(left.end, view);
  return { status: "cancelled", result: { success: false, summary: "", error: left.because } };
}

async function readTurnEnd(
  end: Extract<FollowEnd, { why: "ended" }>["end"],
  view: ReadableSession,
): Promise<JsonObject> {
  const { isError, result: summary, usage, modelUsage, ...rest } = await readEnd(view, end);
  const { errorSubtype, numTurns, totalCostUsd } = rest;
  const timedOut = errorSubtype === "time_limit" || errorSubtype === "timeout";
  const failure = isError === true ? failureOf(end, { ...rest, result: summary }) : {};
  return {
    status: timedOut ? "timeout" : end.data.outcome,
    ...(timedOut && { timedOut }),
    result: { success: isError !== true, summary, ...failure },
    ...given({ receipt: rest["receipt"] }),
    ...briefVerification(rest),
    numTurns,
    totalCostUsd,
    ...given({ usage, modelUsage }),
  };
}

function given(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
