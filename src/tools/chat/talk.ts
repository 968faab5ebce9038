import { z } from "zod";
import { AppError } from "../../domain/error.ts";
import type { StoredEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { tellAsks } from "../blocking/asks.ts";
import type { Dialog } from "../blocking/dialog.ts";
import { followTurn, type Left } from "../blocking/follow.ts";
import type { ToolCall, ToolDeps, ToolOutcome } from "../define.ts";
import { cutText, fit, jsonBytes, oneLine } from "../present/size.ts";
import { readEnd, type EndOfTurn, type SessionView } from "../session-view.ts";
import { Conversation } from "./conversation.ts";

/** What is known of a prompt once it is sent. */
export const Sent = z.object({ sessionId: z.string(), cursor: z.int(), warnings: z.array(z.string()) });

/** One prompt of a conversation, from the moment it was sent to its answer. */

export interface Talk {
  readonly dialog: Dialog;
  /** Where its events begin. */
  readonly cursor: number;
  readonly text: string;
  readonly includeThinking: boolean;
  /** What of the request was left out, a sentence each. */
  readonly warnings: readonly string[];
  /** What is done once it is answered. */
  readonly close?: () => Promise<void>;
}

/** The budget of an answer, of its text alone, and of what is asked, bytes of JSON. */
const [ANSWER_BYTES, TEXT_BYTES, ASKS_BYTES] = [32_768, 24_576, 16_384];
const EXPENDABLE = ["thinking", "toolInvocations"];
const DIGEST = 80;
const NO_TEXT = "(no text; what it did stands in the second block)";

/** An answer before it is put into words. */
interface Reply {
  readonly finalText: string;
  readonly about: JsonObject;
}

export async function talk(view: SessionView, said: Talk, call: ToolCall, deps: ToolDeps): Promise<ToolOutcome> {
  const conversation = new Conversation(view.id, call, said.includeThinking);
  const following = {
    cursor: said.cursor,
    dialog: said.dialog,
    tell: async (event: StoredEvent) => {
      if (event.type === "message") await conversation.hear(event.data.message);
    },
    recall: (event: StoredEvent) => {
      if (event.type === "message") conversation.recall(event.data.message);
    },
    onSilence: () => conversation.beat(),
  };
  let reply: Reply;
  try {
    const left = await followTurn(view, following, call, deps);
    if (left.why === "form") return left;
    if (left.why === "asked") return await waiting(view, left.nextCursor, conversation, { said, call, deps });
    reply = await replyOf(view, left, conversation, said);
  } catch (error) {
    const prompt = oneLine(String(deps.mask({ prompt: said.text })["prompt"]), DIGEST);
    await conversation.fail({ sessionId: view.id, prompt, error: error instanceof Error ? error.message : "" });
    await conversation.complete();
    await isClosed(said);
    throw error;
  }
  await conversation.complete();
  const { finalText, about } = reply;
  const whole = { ...about, ...(!(await isClosed(said)) && { closed: false }) };
  return { answer: { finalText, ...whole }, words: [finalText === "" ? NO_TEXT : finalText, JSON.stringify(whole)] };
}

/** The reply was paid for: that the session cannot be closed behind it takes nothing of it away. */
async function isClosed({ close }: Talk): Promise<boolean> {
  try {
    await close?.();
    return true;
  } catch (error) {
    if (error instanceof AppError) return error.code === "SESSION_NOT_FOUND";
    throw error;
  }
}

async function replyOf(
  view: SessionView,
  left: Exclude<Left, { why: "asked" }>,
  conversation: Conversation,
  said: Talk,
): Promise<Reply> {
  const { id: sessionId } = view;
  if (left.why === "cancelled") throw new AppError("CANCELLED", left.because, { sessionId });
  const { durationMs, numTurns, result, totalCostUsd, usage, advice } = await readEnd(view, left.end);
  const { errorSubtype, message, outcome } = left.end.data;
  const isLate = errorSubtype === "timeout" || errorSubtype === "time_limit";
  if (outcome !== "done" && outcome !== "interrupted" && !isLate) throw failure(view, left.end, [result, advice]);
  const isWhole = outcome === "done";
  const text = isWhole && typeof result === "string" ? result : conversation.lastText;
  const finalText = cutText(text, TEXT_BYTES);
  const rest = {
    sessionId,
    status: isLate ? "timeout" : outcome,
    ...(!isWhole && message !== undefined && { message }),
    ...warned(said),
    ...(said.includeThinking && { thinking: conversation.thinking }),
    toolInvocations: conversation.invocations,
    metadata: { usage, durationMs, totalCostUsd, numTurns },
  };
  const { cut, value } = fit(rest, ANSWER_BYTES - jsonBytes(finalText), EXPENDABLE);
  return { finalText, about: { ...value, ...((cut || finalText !== text) && { truncated: true }) } };
}

function warned({ warnings }: Talk): { warnings?: readonly string[] } {
  return warnings.length > 0 ? { warnings } : {};
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
  { invocations: toolInvocations }: Conversation,
  { call, deps, said }: { said: Talk; call: ToolCall; deps: ToolDeps },
): Promise<ToolOutcome> {
  const asks = await tellAsks(view, { cursor, maxBytes: ASKS_BYTES }, call, deps);
  const { cut, value } = fit({ toolInvocations }, ANSWER_BYTES - ASKS_BYTES, EXPENDABLE);
  const about = { sessionId: view.id, ...asks, ...warned(said), ...value, ...(cut && { truncated: true }) };
  const answer = { finalText: "", ...about };
  return { answer, words: [`Claude Code waits for a decision. ${String(asks["next"])}`, JSON.stringify(about)] };
}
