import { z } from "zod";
import { interrupt } from "../../engine/actions/lifecycle.ts";
import { defineTool } from "../define.ts";
import { actorOf } from "../scope.ts";

/** Ends the running turn; the conversation goes on (seed 004). */
export const claudeChatInterrupt = defineTool({
  name: "claude_chat_interrupt",
  title: "Interrupt a conversation",
  description: "Interrupt what Claude Code is doing in a session. interrupted is false when nothing ran.",
  input: z.strictObject(interrupt.fields),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scope: interrupt.scope,
  async handle({ sessionId }, call, deps) {
    const { interrupted } = await interrupt.run(actorOf(call, deps), { sessionId });
    return { answer: { interrupted, sessionId } };
  },
});
