import { AppError } from "../../domain/error.ts";
import { tellAsks } from "../blocking/asks.ts";
import { followTurn, type Left } from "../blocking/follow.ts";
import type { ToolCall, ToolDeps, ToolOutcome } from "../define.ts";
import { cutText, fit, jsonBytes, oneLine } from "../present/size.ts";
import { readEnd, type EndOfTurn, type SessionView } from "../session-view.ts";
import { Conversation } from "./conversation.ts";

/** One prompt of a conversation, from the moment it was sent to its answer. */

export interface Talk {
  /** Where its events begin. */
  readonly cursor: number;
  readonly text: string;
  readonly includeThinking: boolean;
  /** What is done once it is answered. */
  readonly close?: () => Promise<void>;
}

/** The budget of an answer, and of its text alone, bytes of JSON. */
const [ANSWER_BYTES, TEXT_BYTES] = [32_768, 24_576];
const ASKS_BYTES = 16_384;
const EXPENDABLE = ["thinking", "toolInvocations"];
const DIGEST = 80;
const NO_TEXT = "(no text; what it did stands in the second block)";

export async function talk(view: SessionView, said: Talk, call: ToolCall, deps: ToolDeps): Promise<ToolOutcome> {
  const conversation = new Conversation(view.id, call, said.includeThinking);
  const following = {
    cursor: said.cursor,
    tell: async (event: Parameters<Parameters<typeof followTurn>[1]["tell"]>[0]) => {
      if (event.type === "message") await conversation.hear(event.data.message);
    },
    onSilence: () => conversation.beat(),
  };
  const left = await followTurn(view, following, call, deps);
  if (left.why === "asked") return waiting(view, left.nextCursor, conversation, { call, deps });
  try {
    return await reply(view, left, conversation, said);
  } catch (error) {
    const prompt = oneLine(String(deps.mask({ prompt: said.text })["prompt"]), DIGEST);
    const problem = error instanceof Error ? error.message : String(error);
    await conversation.fail({ sessionId: view.id, prompt, error: problem });
    throw error;
  } finally {
    await conversation.complete();
    await said.close?.();
  }
}

async function reply(
  view: SessionView,
  left: Exclude<Left, { why: "asked" }>,
  conversation: Conversation,
  { includeThinking }: Talk,
): Promise<ToolOutcome> {
  const { id: sessionId } = view;
  if (left.why === "cancelled") throw new AppError("CANCELLED", "The query was cancelled.", { sessionId });
  const { durationMs, numTurns, result, totalCostUsd, usage, advice } = await readEnd(view, left.end);
  const text = typeof result === "string" ? result : "";
  const { errorSubtype, outcome } = left.end.data;
  const isLate = errorSubtype === "timeout" || errorSubtype === "time_limit";
  if (outcome !== "done" && outcome !== "interrupted" && !isLate) throw failure(view, left.end, [text, advice]);
  const finalText = cutText(text, TEXT_BYTES);
  const rest = {
    sessionId,
    status: isLate ? "timeout" : outcome,
    ...(includeThinking && { thinking: conversation.thinking }),
    toolInvocations: conversation.invocations,
    metadata: { usage, durationMs, totalCostUsd, numTurns },
  };
  const { cut, value } = fit(rest, ANSWER_BYTES - jsonBytes(finalText), EXPENDABLE);
  const about = { ...value, ...((cut || finalText !== text) && { truncated: true }) };
  return { answer: { finalText, ...about }, words: [finalText === "" ? NO_TEXT : finalText, JSON.stringify(about)] };
}

/** A turn that broke down has no reply: what Claude Code said of it is the error. */
function failure({ id: sessionId }: SessionView, { data }: EndOfTurn, said: readonly unknown[]): AppError {
  const { category, errorSubtype, outcome } = data;
  const why = said.filter((part) => typeof part === "string" && part !== "").join(" ");
  const code = outcome === "cancelled" ? "CANCELLED" : "INTERNAL";
  return new AppError(code, `Claude Code ended with ${category ?? errorSubtype ?? outcome}: ${why}`, { sessionId });
}

/** Nobody is kept waiting for a decision of their own. */
async function waiting(
  view: SessionView,
  cursor: number,
  { invocations }: Conversation,
  { call, deps }: { call: ToolCall; deps: ToolDeps },
): Promise<ToolOutcome> {
  const asks = await tellAsks(view, { cursor, maxBytes: ASKS_BYTES }, call, deps);
  const rest = { sessionId: view.id, ...asks, toolInvocations: invocations };
  const { cut, value } = fit(rest, ANSWER_BYTES, EXPENDABLE);
  const about = { ...value, ...(cut && { truncated: true }) };
  const answer = { finalText: "", ...about };
  return { answer, words: [`Claude Code waits for a decision. ${String(asks["next"])}`, JSON.stringify(about)] };
}
