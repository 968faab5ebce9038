import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";
import { statusOf, type SessionState, type SessionStatus } from "../domain/session.ts";
import { events } from "../engine/actions/reading.ts";
import { EXPENDABLE_OF_RESULT, shortResult } from "../view/result.ts";
import { fit, jsonBytes } from "../view/size.ts";
import type { Answered, ToolCall, ToolDeps, ToolOutcome } from "./define.ts";
import { answerNow, type BeforeRequests, type Target } from "./check/answer.ts";
import { readRequest } from "./check/request.ts";
import { waitEliciting, type PlainWait, type Waiting } from "./elicitation/eliciting-wait.ts";
import { canShowForms, type FormContext } from "./elicitation/user.ts";
import { resumeToken } from "./resume-token.ts";
import {
  readEnd,
  readResult,
  startWarnings,
  readableSession,
  type EndOfTurn,
  type ReadableSession,
} from "./readable-session.ts";
import { pollInterval, turnWait, waitFor } from "./waiting.ts";

/**
 * Answers of `claude_code` and `claude_code_reply`: the cursor for reading on, and the result if the turn ended within the
 * wait.
 */

/** Maximum size of an answer without a `maxBytes` of its own, bytes. */
const ANSWER_BYTES = 32_768;

/** Started prompt. Its events begin at `cursor`; `warnings` point out arguments that may be mistakes. */
export const SentPrompt = z.object({ sessionId: z.string(), cursor: z.int(), warnings: z.array(z.string()) });
export type SentPrompt = z.infer<typeof SentPrompt>;

export async function answerTurn(
  begun: SentPrompt,
  waiting: Omit<Waiting, "work">,
  { call, deps }: { readonly call: ToolCall; readonly deps: ToolDeps },
): Promise<ToolOutcome> {
  const { cursor, sessionId } = begun;
  const view = readableSession(sessionId, call, deps);
  const task = await answerWithTask(view, begun, { call, deps });
  if (task) return task;
  const plain: PlainWait = async ([target], until, timeoutMs) =>
    target && waitFor([target], { until, timeoutMs, maxMs: deps.limits.maxWaitMs }, call);
  const news = { targets: [{ view, cursor }], until: "news" as const };
  const waited = await waitEliciting(plain, news, { ...waiting, work: begun }, { call, deps });
  if ("needsInput" in waited) return waited;
  const record = await view.record();
  const { state, unreadable } = record;
  const ended = unreadable !== undefined || (state.lastTurnEventId !== null && state.lastTurnEventId >= cursor);
  const result = ended ? await readResult(view, record) : undefined;
  const ofStart = await startWarnings(view, cursor);
  const warnings = [...begun.warnings, ...ofStart.values()];
  const answer = answerStarted(view, state, { ...begun, warnings }, { call, deps });
  if (result)
    return { answer: withResult({ ...answer, nextCursor: state.lastEventId + 1 }, result, state.lastTurnEventId) };
  const isAsked = state.requests.length > 0 && waiting.waitMs !== 0 && call.scopes.includes(events.scope);
  return { answer: isAsked ? await withRequests(answer, { view, cursor, warnings: ofStart }, call, deps) : answer };
}

/** Adds open requests and the output before them, in the form of a poll, so that the caller need not poll. */
async function withRequests(
  answer: JsonObject,
  { warnings, ...target }: Target & BeforeRequests,
  call: ToolCall,
  deps: ToolDeps,
): Promise<JsonObject> {
  const request = readRequest({ waitMs: 0, maxBytes: ANSWER_BYTES - jsonBytes(answer) }, deps.limits);
  const beforeRequests = { warnings };
  const current = await answerNow({ ...request, targets: [target], several: false, beforeRequests }, call, deps);
  return { ...answer, ...current };
}

interface Answering {
  readonly call: ToolCall;
  readonly deps: Pick<ToolDeps, "diskResume" | "now">;
}

function answerStarted(view: ReadableSession, state: SessionState, { cursor, warnings }: SentPrompt, by: Answering) {
  return {
    sessionId: view.id,
    status: statusOf(state),
    ...turnWait(state, by.deps.now()),
    nextCursor: cursor,
    ...pollInterval(state),
    ...positionInQueue(state, cursor),
    ...tokenFor(view, by),
    ...(warnings.length > 0 && { warnings }),
  };
}

interface BegunTask extends SentPrompt {
  /** Arguments that shape the answer at the end of the task. */
  readonly shape?: JsonObject;
  /** Further fields of the answer. */
  readonly known?: JsonObject;
}

/** Answers at once with a task, if the client follows tasks by itself. */
export async function answerWithTask(
  view: ReadableSession,
  { known, ...begun }: BegunTask,
  by: FormContext,
): Promise<Answered | undefined> {
  const { call, deps } = by;
  const task = call.client.tasks ? await deps.startTask?.(view, begun) : undefined;
  if (!task) return undefined;
  const { state } = await view.record();
  const { pollInterval: _, ...answer } = answerStarted(view, state, begun, by);
  return { answer: { ...answer, ...known, next: adviceOnTask(by) }, task };
}

/** Tells the model of a client with tasks to go on, because each further look would be a request of the model. */
function adviceOnTask(by: FormContext): string {
  const comes = "Go on with other work or end your turn: the result comes by itself, as a notification.";
  if (canShowForms(by)) return `${comes} Requests are shown to the user in a form.`;
  return by.deps.callersAnswer ? `${comes} Requests wait in actions[] of claude_code_check.` : comes;
}

/** Answers with a turn's end as first reported, unaffected by later events. */
export async function answerEnd(view: ReadableSession, end: EndOfTurn, by: Answering): Promise<Answered> {
  const { outcome } = end.data;
  const status: SessionStatus = outcome === "failed" || outcome === "lost" ? "error" : "idle";
  const answer = { sessionId: view.id, status, nextCursor: end.id + 1, ...tokenFor(view, by) };
  return { answer: withResult(answer, await readEnd(view, end), end.id) };
}

function tokenFor({ id }: ReadableSession, { call, deps }: Answering): { resumeToken?: string } {
  const token = resumeToken(deps.diskResume, call.principal, id);
  return token === undefined ? {} : { resumeToken: token };
}

/** Returns the position of the queued prompt at `cursor`, from 1. */
function positionInQueue({ queue }: SessionState, cursor: number): { queuePosition?: number } {
  const index = queue.findIndex(({ eventId }) => eventId === cursor);
  return index === -1 ? {} : { queuePosition: index + 1 };
}

/** `resultEventId` is the event with the full result. */
function withResult(answer: JsonObject, result: JsonObject, resultEventId: number | null): JsonObject {
  const truncated = { truncated: true, truncatedFields: ["result"], resultEventId };
  const room = ANSWER_BYTES - jsonBytes({ ...answer, ...truncated, result: {} });
  const { value, cut } = fit(shortResult(result), room, EXPENDABLE_OF_RESULT);
  return { ...answer, ...(cut && truncated), result: value };
}
