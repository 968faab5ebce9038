import { z } from "zod";
import { requestOf } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { statusOf, type SessionState } from "../../domain/session.ts";
import { waitingText } from "../../domain/standstill.ts";
import { reply } from "../../engine/actions/begin.ts";
import { SessionId } from "../../engine/actions/input.ts";
import { events } from "../../engine/actions/reading.ts";
import { cutText } from "../../view/size.ts";
import { summaryOf } from "../../view/summary.ts";
import { briefVerification } from "../../view/verification.ts";
import type { ToolLimits } from "../../tools/arguments/wait-limits.ts";
import { readResult, readableSession, type ReadableSession } from "../../tools/readable-session.ts";
import { formatArguments } from "./delegate.ts";
import { definePrompt, shortWait } from "./define-prompt.ts";

const Input = z.strictObject({ sessionId: SessionId.describe("session to continue") });

/** Maximum bytes of the last result in the prompt. */
const RESULT_BYTES = 8_192;

export const resume = definePrompt({
  name: "resume",
  title: "Continue a session",
  description: "Continue a session: its last result, open requests and queued prompts, and what to do next.",
  input: Input,
  kinds: { sessionId: "session" },
  scopes: [events.scope, reply.scope],
  write: async ({ sessionId }, caller, deps) => {
    const ready = await deps();
    const client = { elicitation: false, tasks: false } as const;
    const quiet = { signal: new AbortController().signal, client, resumeState: undefined, inputResponses: {} };
    const view = readableSession(sessionId, { ...caller, ...quiet }, ready);
    const record = await view.record();
    const { state } = record;
    const parts = [
      `Continue session ${sessionId}. It is ${[statusOf(state), waitingText(state)].filter((part) => part !== "").join(" and ")}; model calls so far: ${String(state.totals.turns)}.`,
      ...lastResultText(state, await readResult(view, record)),
      ...(await readRequests(view, state)),
      ...queueText(state),
      nextStepText(sessionId, state, caller.limits),
    ];
    return parts.join("\n\n");
  },
});

function lastResultText({ lastTurnEventId, turn }: SessionState, result: JsonObject | undefined): string[] {
  if (turn) return ["A turn is running."];
  if (!result) return lastTurnEventId === null ? ["It has had no prompt yet."] : [];
  const { advice, errorSubtype, isError, warnings } = result;
  const text = typeof result["result"] === "string" ? cutText(result["result"], RESULT_BYTES) : "";
  const how = isError === true ? `The last turn failed (${String(errorSubtype)}).` : "The last turn has ended.";
  const notes = [advice, warnings].flat().filter((each) => typeof each === "string");
  const note = notes.map((each) => ` ${each}`).join("");
  const seen = Object.entries({ receipt: result["receipt"], ...briefVerification(result) })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `The server's ${name} of it: ${JSON.stringify(value)}`);
  return [`${how}${note} Its result:\n\n<result>\n${text}\n</result>`, ...seen];
}

async function readRequests(view: ReadableSession, { requests }: SessionState): Promise<string[]> {
  if (requests.length === 0) return [];
  const lines = requests.map(async ({ eventId, kind, requestId, toolName }) => {
    const request = requestOf((await view.read(eventId, 1)).at(0));
    return `- ${kind} ${requestId}: ${request ? summaryOf(toolName, request.input) : toolName}`;
  });
  return [`Open requests:\n${(await Promise.all(lines)).join("\n")}`];
}

function queueText({ queue }: SessionState): string[] {
  const held = queue.filter(({ held: isHeld }) => isHeld).length;
  const waiting = queue.length - held;
  return [
    ...(waiting > 0 ? [`${String(waiting)} prompts are queued.`] : []),
    ...(held > 0 ? [`${String(held)} prompts are held since a turn was stopped: ask me whether to run them.`] : []),
  ];
}

function nextStepText(
  sessionId: string,
  { requests, closed, lastEventId, turn }: SessionState,
  limits: ToolLimits,
): string {
  if (closed?.reason === "cancelled") {
    return "It was cancelled and takes no more prompts: start a new session (claude_code) for what is left to do.";
  }
  const from = requests[0]?.eventId ?? lastEventId + 1;
  const poll = `claude_code_check ${formatArguments({ action: "poll", sessionId, cursor: from })}`;
  if (requests.length > 0) {
    return `Read the requests with ${poll}, answer each (respond_permission, or answer_question), and follow it to its end.`;
  }
  if (turn) return `Follow it to its end with ${poll}.`;
  return `Read its history with claude_code_check ${formatArguments({ action: "poll", sessionId, cursor: 1, waitMs: 0 })}. Tell me where it stands and what you would do next; then go on with claude_code_reply ${formatArguments({ sessionId, prompt: "...", ...shortWait(limits) })}.`;
}
