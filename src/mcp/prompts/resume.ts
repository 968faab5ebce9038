import { z } from "zod";
import { requestOf } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { statusOf, type SessionState } from "../../domain/session.ts";
import { reply } from "../../engine/actions/begin.ts";
import { SessionId } from "../../engine/actions/input.ts";
import { events } from "../../engine/actions/reading.ts";
import { cutText } from "../../view/size.ts";
import { summaryOf } from "../../view/summary.ts";
import { readResult, viewSession, type SessionView } from "../../tools/session-view.ts";
import { call } from "./delegate.ts";
import { definePrompt } from "./prompt.ts";

const Input = z.strictObject({ sessionId: SessionId.describe("the session to go on with") });

/** Of the last result, bytes. */
const RESULT_BYTES = 8_192;

/** Where a session stands, and what is to be done next. */
export const resume = definePrompt({
  name: "resume",
  title: "Go on with a session",
  description: "Pick a session up where it stands: its last result, what waits in it, what to do next.",
  input: Input,
  kinds: { sessionId: "session" },
  scopes: [events.scope, reply.scope],
  write: async ({ sessionId }, caller, deps) => {
    const ready = await deps();
    const client = { elicitation: false, tasks: false } as const;
    const quiet = { signal: new AbortController().signal, client, resumeState: undefined, inputResponses: {} };
    const view = viewSession(sessionId, { ...caller, ...quiet }, ready);
    const { state } = await view.record();
    const parts = [
      `Go on with session ${sessionId}. It is ${statusOf(state)}; model calls so far: ${String(state.totals.turns)}.`,
      ...lastOf(state, await readResult(view, state)),
      ...(await requestsOf(view, state)),
      ...queueOf(state),
      nextOf(sessionId, state),
    ];
    return parts.join("\n\n");
  },
});

function lastOf({ lastTurnEventId, turn }: SessionState, result: JsonObject | undefined): string[] {
  if (turn) return ["A turn runs in it."];
  if (!result) return lastTurnEventId === null ? ["Nothing has been asked of it yet."] : [];
  const { advice, errorSubtype, isError } = result;
  const text = typeof result["result"] === "string" ? cutText(result["result"], RESULT_BYTES) : "";
  const how = isError === true ? `The last turn failed (${String(errorSubtype)}).` : "The last turn has ended.";
  const told = typeof advice === "string" ? ` ${advice}` : "";
  return [`${how}${told} Its result:\n\n<result>\n${text}\n</result>`];
}

async function requestsOf(view: SessionView, { requests }: SessionState): Promise<string[]> {
  if (requests.length === 0) return [];
  const lines = requests.map(async ({ eventId, kind, requestId, toolName }) => {
    const request = requestOf((await view.read(eventId, 1)).at(0));
    return `- ${kind} ${requestId}: ${request ? summaryOf(toolName, request.input) : toolName}`;
  });
  return [`It waits for decisions:\n${(await Promise.all(lines)).join("\n")}`];
}

function queueOf({ queue }: SessionState): string[] {
  const held = queue.filter(({ held: isHeld }) => isHeld).length;
  const waiting = queue.length - held;
  return [
    ...(waiting > 0 ? [`${String(waiting)} prompts wait for their turn.`] : []),
    ...(held > 0 ? [`${String(held)} prompts are held since something was stopped: ask me whether to run them.`] : []),
  ];
}

function nextOf(sessionId: string, { requests, closed, lastEventId, turn }: SessionState): string {
  if (closed?.reason === "cancelled") {
    return "It was cancelled and takes no more prompts: what is left to do goes to a new session (claude_code).";
  }
  const from = requests[0]?.eventId ?? lastEventId + 1;
  const poll = `claude_code_check ${call({ action: "poll", sessionId, cursor: from })}`;
  if (requests.length > 0) {
    return `Look at the requests with ${poll}, answer each (respond_permission, or answer_question), and follow it to its end.`;
  }
  if (turn) return `Follow it to its end with ${poll}.`;
  return `What was said before is in claude_code_check ${call({ action: "poll", sessionId, cursor: 1, waitMs: 0 })}. Tell me where it stands and what you would do next; then go on with claude_code_reply ${call({ sessionId, prompt: "...", waitMs: 30_000 })}.`;
}
