import type { JsonObject } from "../domain/json.ts";
import { statusOf, type SessionState, type SessionStatus } from "../domain/session.ts";
import type { ToolCall } from "./define.ts";
import { EXPENDABLE_OF_RESULT } from "./present/result.ts";
import { fit, jsonBytes } from "./present/size.ts";
import { resumeToken, type DiskResume } from "./resume-token.ts";
import { readResult, type SessionView } from "./session-view.ts";
import { waitFor } from "./waiting.ts";

/** What a start and a reply answer: where to read on, and the result when the turn ended within the wait. */

/** The budget of an answer for which the caller cannot choose one. */
const ANSWER_BYTES = 32_768;

/** How soon a look at the session is worth while, ms; nothing is to be expected of a session in which nothing runs. */
export function pollInterval(status: SessionStatus): { pollInterval?: number } {
  if (status === "running") return { pollInterval: 3_000 };
  return status === "waiting_permission" ? { pollInterval: 1_000 } : {};
}

/** `cursor` is where the events of the prompt begin; `warnings` are of what was asked for and may not be meant. */
export async function answerTurn(
  view: SessionView,
  call: ToolCall,
  begun: { cursor: number; waitMs: number; warnings?: readonly string[] },
  diskResume: DiskResume,
): Promise<JsonObject> {
  const { cursor, waitMs, warnings = [] } = begun;
  await waitFor([{ view, cursor }], { until: "news", timeoutMs: waitMs }, call);
  const { state } = await view.record();
  const status = statusOf(state);
  const ended = state.lastTurnEventId !== null && state.lastTurnEventId >= cursor;
  const result = ended ? await readResult(view, state) : undefined;
  const nextCursor = result ? state.lastEventId + 1 : cursor;
  const token = resumeToken(diskResume, call.principal, view.id);
  const answer = {
    sessionId: view.id,
    status,
    nextCursor,
    ...pollInterval(status),
    ...placeOf(state, cursor),
    ...(token !== undefined && { resumeToken: token }),
    ...(warnings.length > 0 && { warnings }),
  };
  return result ? withResult(answer, result) : answer;
}

/** A prompt that waits for its turn: how many are before it, counted from 1. */
function placeOf({ queue }: SessionState, cursor: number): { queuePosition?: number } {
  const index = queue.findIndex(({ eventId }) => eventId === cursor);
  return index === -1 ? {} : { queuePosition: index + 1 };
}

function withResult(answer: JsonObject, result: JsonObject): JsonObject {
  const truncated = { truncated: true, truncatedFields: ["result"] };
  const room = ANSWER_BYTES - jsonBytes({ ...answer, ...truncated, result: {} });
  const { value, cut } = fit(result, room, EXPENDABLE_OF_RESULT);
  return { ...answer, ...(cut && truncated), result: value };
}
