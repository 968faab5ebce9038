import { z } from "zod";
import { defineTool } from "../define.ts";
import { IdempotencyKey, Prompt, SessionId } from "../prompt.ts";
import { viewSession } from "../session-view.ts";
import { answerTurn, TurnAnswer } from "../turn-answer.ts";
import { WaitMs, waitWithin } from "../waiting.ts";

/** Goes on with a session, whichever process or server ran it before. */
export const claudeCodeReply = defineTool({
  name: "claude_code_reply",
  title: "Reply to Claude Code",
  description:
    "Send the next prompt to a session in which nothing runs, also after an error or a restart. Returns as claude_code does.",
  input: z.strictObject({
    sessionId: SessionId,
    prompt: Prompt,
    waitMs: WaitMs.exactOptional().describe("ms to wait for the end of the turn or a request. Default: 0"),
    idempotencyKey: IdempotencyKey,
  }),
  output: TurnAnswer,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  async handle({ sessionId, prompt, idempotencyKey, ...args }, call, deps) {
    const waitMs = waitWithin(args.waitMs, 0, deps.limits);
    const view = viewSession(sessionId, call, deps);
    const request = { text: prompt, ...(idempotencyKey !== undefined && { idempotencyKey }) };
    const { cursor } = await deps.engine.prompt(call.principal, sessionId, request);
    return { answer: await answerTurn(view, call, { cursor, waitMs }) };
  },
});
