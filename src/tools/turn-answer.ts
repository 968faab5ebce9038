import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";
import { statusOf, type SessionState, type SessionStatus } from "../domain/session.ts";
import type { Asking } from "./asking/asking.ts";
import type { ToolCall, ToolOutcome } from "./define.ts";
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
export const Begun = z.object({ sessionId: z.string(), cursor: z.int(), warnings: z.array(z.string()) });
export type Begun = z.infer<typeof Begun>;

export async function answerTurn(
  view: SessionView,
  { cursor, warnings }: Begun,
  asking: Asking,
  { call, diskResume }: { call: ToolCall; diskResume: DiskResume },
): Promise<ToolOutcome> {
  const waited = await asking.wait({
    targets: [{ view, cursor }],
    until: "news",
    plainly: async ([target], until, timeoutMs) => target && waitFor([target], { until, timeoutMs }, call),
  });
  if ("needsInput" in waited) return waited;
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
  return { answer: result ? withResult(answer, result) : answer };
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
