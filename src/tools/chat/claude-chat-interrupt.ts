import { z } from "zod";
import { defineTool } from "../define.ts";
import { BY, ofSession } from "./fields.ts";

/** Ends the running turn; the conversation goes on (seed 004). */
export const claudeChatInterrupt = defineTool({
  name: "claude_chat_interrupt",
  title: "Interrupt a conversation",
  description: "Interrupt what Claude Code is doing in a session. interrupted is false when nothing ran.",
  input: z.strictObject(ofSession),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scope: "run",
  async handle({ sessionId }, { principal }, { engine }) {
    const { state } = await engine.get(principal, sessionId);
    const interrupted = state.turn !== null;
    if (interrupted) await engine.interrupt(principal, sessionId, BY);
    return { answer: { interrupted, sessionId } };
  },
});
