import type { JsonObject } from "../domain/json.ts";
import type { OpenAsk } from "../domain/permission.ts";
import { statusOf, type SessionState } from "../domain/session.ts";
import type { WaitUntil } from "../engine/api.ts";
import type { ToolCall, ToolDeps } from "./define.ts";
import type { Asked } from "./present/action.ts";
import { assembleCheck, type CheckAnswer } from "./present/check.ts";
import { cutText } from "./present/size.ts";
import { readResult, readShown, type SessionView } from "./session-view.ts";
import { pollInterval } from "./turn-answer.ts";
import { waitFor } from "./waiting.ts";

/** What claude_code_check answers: it waits for what the caller is after, then tells one moment of the session. */

export interface CheckRequest {
  readonly cursor: number;
  readonly waitMs: number;
  readonly until: WaitUntil;
  readonly maxEvents: number;
  readonly maxBytes: number;
}

/** Between a look at the session and its answer something may be asked; after so many looks the next poll tells it. */
const LOOKS_MAX = 3;

export async function answerCheck(
  view: SessionView,
  request: CheckRequest,
  call: ToolCall,
  deps: ToolDeps,
): Promise<JsonObject> {
  const { state } = await view.record();
  // A cursor behind the end belongs to another session, or to a log that is gone: waiting for it would be for ever.
  const reading = { ...request, cursor: Math.min(Math.max(request.cursor, 1), state.lastEventId + 1) };
  const resetTo = reading.cursor < request.cursor ? reading.cursor : undefined;
  await waitUntilShown(view, reading, call, deps);
  for (let look = 1; ; look += 1) {
    const { answer, undelivered } = await lookAt(view, reading, resetTo, deps);
    if (undelivered.length === 0 || look === LOOKS_MAX || call.signal.aborted) return answer;
    // The time of a request runs from here; the next look tells it as it is now.
    await deps.engine.delivered(call.principal, view.id, undelivered);
  }
}

/** Many events are of no interest to a caller: until one is, waiting for any event goes on. */
async function waitUntilShown(view: SessionView, request: CheckRequest, call: ToolCall, deps: ToolDeps): Promise<void> {
  const { until, waitMs } = request;
  const deadline = deps.now() + waitMs;
  let { cursor } = request;
  let left = waitMs;
  while ((await waitFor(view, { cursor, until, timeoutMs: left }, call)) && until === "event") {
    const { state } = await view.record();
    const range = { from: cursor, upTo: state.lastEventId, maxEvents: 1 };
    const { events, next } = await readShown(view, range, { eventId: null, result: undefined });
    if (events.length > 0 || !state.turn || next === cursor) return;
    cursor = next;
    left = deadline - deps.now();
  }
}

type Look = { readonly answer: JsonObject; readonly undelivered: CheckAnswer["shown"] };

async function lookAt(
  view: SessionView,
  request: CheckRequest,
  resetTo: number | undefined,
  deps: ToolDeps,
): Promise<Look> {
  const { state } = await view.record();
  const { cursor, maxEvents, maxBytes } = request;
  const result = await readResult(view, state);
  const asked = await Promise.all(state.asks.map(async (open) => readAsked(view, open)));
  const range = { from: cursor, upTo: state.lastEventId, maxEvents };
  const read = await readShown(view, range, { eventId: state.lastTurnEventId, result });
  const status = statusOf(state);
  const cursorResetTo = read.resetTo ?? resetTo;
  const { answer, shown } = assembleCheck(
    {
      head: {
        sessionId: view.id,
        status,
        ...pollInterval(status),
        ...(cursorResetTo !== undefined && { cursorResetTo }),
      },
      tail: tailOf(state),
      events: read.events,
      end: read.next,
      more: read.next <= state.lastEventId,
      asked: asked.flat(),
      result,
      now: deps.now(),
    },
    maxBytes,
  );
  return { answer, undelivered: shown.filter((each) => isNews(each, state)) };
}

async function readAsked(view: SessionView, open: OpenAsk): Promise<Asked[]> {
  const [event] = await view.read(open.eventId, 1);
  return event?.type === "permission.asked" || event?.type === "question.asked" ? [{ open, ask: event.data }] : [];
}

/** Whether the engine has not yet heard that this request was shown, or shown whole. */
function isNews({ requestId, whole }: CheckAnswer["shown"][number], { asks }: SessionState): boolean {
  const open = asks.find((ask) => ask.requestId === requestId);
  return open !== undefined && (open.deliveredAt === undefined || (whole && !open.seenWhole));
}

function tailOf({ closed, lastEventId, lastToolUseId }: SessionState): JsonObject {
  const cancelled = closed?.reason === "cancelled" && {
    cancelledAt: new Date(closed.at).toISOString(),
    cancelledReason: cutText(closed.message ?? "cancelled", 300),
    cancelledSource: cutText(closed.by, 100),
  };
  return { ...cancelled, lastEventId, ...(lastToolUseId !== null && { lastToolUseId: cutText(lastToolUseId, 100) }) };
}
