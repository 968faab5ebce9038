import { z } from "zod";
import { AppError } from "../../domain/error.ts";
import type { StoredEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { failureOf, describeFailure, readOpenRequests } from "../blocking/outcome.ts";
import { followTurn, type FollowEnd } from "../blocking/follow.ts";
import { close as closing } from "../../engine/actions/lifecycle.ts";
import { readTurn } from "../blocking/ended-turn.ts";
import type { Answered, EndedTask, ToolCall, ToolDeps, ToolOutcome } from "../define.ts";
import { actingCaller } from "../scope.ts";
import { answerWithTask } from "../turn-answer.ts";
import { cutText, fit, jsonBytes, oneLine } from "../../view/size.ts";
import { briefVerification, verifyingLine } from "../../view/verification.ts";
import { readEnd, readableSession, type EndOfTurn, type ReadableSession } from "../readable-session.ts";
import { Conversation } from "./conversation.ts";

/** Prompt after sending, as kept over the rounds of a call. */
export const Sent = z.object({ sessionId: z.string(), cursor: z.int(), warnings: z.array(z.string()) });
export type Sent = z.infer<typeof Sent>;

/** Follows a prompt of a conversation, from sending to the answer. */

export interface Talk {
  /** Tool that sent the prompt. */
  readonly tool: string;
  /** `cursor` is the first event of the prompt; `warnings` name the parts of the request left out, a sentence each. */
  readonly sent: Sent;
  readonly text: string;
  readonly includeThinking: boolean;
  /** Closes the session after the reply. */
  readonly close?: () => Promise<void>;
}

/** Maximum sizes of an answer, of its text alone, and of its open requests, bytes of JSON. */
const [ANSWER_BYTES, TEXT_BYTES, REQUESTS_BYTES] = [32_768, 24_576, 16_384];
const EXPENDABLE = ["thinking", "toolInvocations"];
const DIGEST = 80;
const NO_TEXT = "(no text; see the second block)";

/** Answer before conversion to text blocks. */
interface Reply {
  readonly finalText: string;
  readonly status: string;
  readonly about: JsonObject;
  /** Set if the turn failed. */
  readonly failure?: { readonly error: string } & JsonObject;
  /** `failure` as a sentence. */
  readonly errorText?: string;
}

/** Sends `said` on its way: answers with a task if the client follows tasks, otherwise at the end of the turn. */
export async function talk(said: Talk, call: ToolCall, deps: ToolDeps): Promise<ToolOutcome> {
  const { includeThinking, sent } = said;
  const view = readableSession(sent.sessionId, call, deps);
  const shape = { ...(includeThinking && { includeThinking }), ...(said.close && { close: true }) };
  const task = await answerWithTask(view, { ...sent, shape }, { call, deps });
  const rest = async (alone: ToolCall) => follow(said, alone, deps);
  return task ? { ...task, rest } : rest(call);
}

const Shape = z.object({ includeThinking: z.boolean().exactOptional(), close: z.boolean().exactOptional() });

/**
 * Answers as `talk` does at the end of the turn, from the log. Closes the session if nothing has, because its server may have
 * died, and if nobody has used the session since: a client may ask for the end of a task days later.
 */
export async function answerTalk({ shape, ...turn }: EndedTask, call: ToolCall, deps: ToolDeps): Promise<Answered> {
  const { sessionId } = turn;
  const { close: closes = false, includeThinking = false } = Shape.safeParse(shape).data ?? {};
  const view = readableSession(sessionId, call, deps);
  const conversation = new Conversation(sessionId, call, includeThinking);
  const end = await readTurn(view, turn, (event) => {
    if (event.type === "message") conversation.recall(event.data.message);
  });
  const endSession = async () => void (await closing.run(actingCaller(call, deps), { sessionId }));
  const { closed, lastTurnEventId, queue, turn: running } = (await view.record()).state;
  const isUnused = lastTurnEventId === turn.endEventId && running === null && queue.length === 0;
  const said = {
    tool: "",
    sent: { ...turn, warnings: [] },
    text: "",
    includeThinking,
    ...(closes && !closed && isUnused && { close: endSession }),
  };
  const reply = await buildReply(view, { why: "ended", end }, conversation, said);
  return answerWith(reply, await closeSession(said));
}

async function follow(said: Talk, call: ToolCall, deps: ToolDeps): Promise<ToolOutcome> {
  const { sent, tool } = said;
  const view = readableSession(sent.sessionId, call, deps);
  const conversation = new Conversation(view.id, call, said.includeThinking);
  const following = {
    cursor: sent.cursor,
    waiting: { tool, work: sent },
    onEvent: async (event: StoredEvent) => {
      if (event.type === "message") await conversation.hear(event.data.message);
      if (event.type === "verification.started") conversation.advance(verifyingLine(event.data));
    },
    recall: (event: StoredEvent) => {
      if (event.type === "message") conversation.recall(event.data.message);
    },
    onSilence: () => conversation.beat(),
  };
  const tellFailure = async (failure: { readonly error: string } & JsonObject): Promise<void> => {
    const prompt = oneLine(String(deps.mask({ prompt: said.text })["prompt"]), DIGEST);
    await conversation.fail({ sessionId: view.id, prompt, ...failure });
  };
  let reply: Reply;
  try {
    const left = await followTurn(view, following, call, deps);
    if (left.why === "form") return left;
    if (left.why === "asked") return await waiting(view, left.nextCursor, conversation, { said, call, deps });
    reply = await buildReply(view, left, conversation, said);
  } catch (error) {
    await tellFailure({ error: error instanceof Error ? error.message : "" });
    await conversation.complete();
    await closeSession(said);
    throw error;
  }
  if (reply.failure) await tellFailure(reply.failure);
  await conversation.complete();
  return answerWith(reply, await closeSession(said));
}

function answerWith({ about, failure, finalText, status, errorText = "" }: Reply, isDone: boolean): Answered {
  const whole = { ...about, ...(!isDone && { closed: false }) };
  const outcome = status === "done" ? {} : { outcome: status };
  if (!failure) {
    const words = [finalText === "" ? NO_TEXT : finalText, JSON.stringify(whole)] as const;
    return { answer: { finalText, ...whole }, words, ...outcome };
  }
  const words = [`Error: ${errorText}`, JSON.stringify({ finalText, ...whole })] as const;
  return { answer: { isError: true, finalText, ...whole }, words, isError: true, ...outcome };
}

/** Closes the session; returns `false` on failure. Never throws an `AppError`, because the caller has paid for the reply. */
async function closeSession({ close }: Talk): Promise<boolean> {
  try {
    await close?.();
    return true;
  } catch (error) {
    if (error instanceof AppError) return error.code === "SESSION_NOT_FOUND";
    throw error;
  }
}

async function buildReply(
  view: ReadableSession,
  left: Exclude<FollowEnd, { why: "asked" }>,
  conversation: Conversation,
  said: Talk,
): Promise<Reply> {
  const { id: sessionId } = view;
  if (left.why === "cancelled") throw new AppError("CANCELLED", left.because, { sessionId });
  const end = await readEnd(view, left.end);
  const { durationMs, numTurns, receipt, result, totalCostUsd, usage } = end;
  const { failure, status, errorText = "" } = endingOf(left.end, end);
  if (status === "cancelled") throw new AppError("CANCELLED", describeFailure(left.end, end), { sessionId });
  const text = status === "done" && typeof result === "string" ? result : conversation.lastText;
  const finalText = cutText(text, TEXT_BYTES);
  const rest = {
    sessionId,
    status,
    ...(failure ?? endMessage(left.end)),
    ...warningFields(said, left.end),
    ...(said.includeThinking && { thinking: conversation.thinking }),
    toolInvocations: conversation.invocations,
    metadata: {
      ...(receipt !== undefined && { receipt }),
      ...briefVerification(end),
      usage,
      durationMs,
      totalCostUsd,
      numTurns,
    },
  };
  const { cut, value } = fit(rest, ANSWER_BYTES - jsonBytes(finalText), EXPENDABLE);
  const about = { ...value, ...((cut || finalText !== text) && { truncated: true }) };
  return { finalText, status, about, ...(failure && { failure, errorText }) };
}

/** A failed turn is an error. A turn ended by a caller or by a time limit still has a reply. */
function endingOf(end: EndOfTurn, answer: JsonObject): Pick<Reply, "failure" | "status" | "errorText"> {
  const { errorSubtype, outcome } = end.data;
  if (errorSubtype === "timeout" || errorSubtype === "time_limit") return { status: "timeout" };
  const isFailure = outcome === "failed" || outcome === "lost";
  return {
    status: outcome,
    ...(isFailure && { failure: failureOf(end, answer), errorText: describeFailure(end, answer) }),
  };
}

function endMessage({ data: { message, outcome } }: EndOfTurn): { message?: string } {
  return outcome === "done" || message === undefined ? {} : { message };
}

function warningFields({ sent }: Talk, end?: EndOfTurn): { warnings?: readonly string[] } {
  const warnings = [...sent.warnings, ...(end?.data.warnings ?? [])];
  return warnings.length > 0 ? { warnings } : {};
}

/** Answers with open requests: the caller has to decide, so the call must not wait. */
async function waiting(
  view: ReadableSession,
  cursor: number,
  { invocations: toolInvocations }: Conversation,
  { call, deps, said }: { said: Talk; call: ToolCall; deps: ToolDeps },
): Promise<ToolOutcome> {
  const requests = await readOpenRequests(view, { cursor, maxBytes: REQUESTS_BYTES }, call, deps);
  const { cut, value } = fit({ toolInvocations }, ANSWER_BYTES - REQUESTS_BYTES, EXPENDABLE);
  const about = { sessionId: view.id, ...requests, ...warningFields(said), ...value, ...(cut && { truncated: true }) };
  const answer = { finalText: "", ...about };
  const words = [`Claude Code waits for a decision. ${String(requests["next"])}`, JSON.stringify(about)] as const;
  return { answer, words, outcome: "waiting_permission" };
}
