import { z } from "zod";
import { defineTool } from "../define.ts";
import { formsOf } from "../prompt.ts";
import { viewSession } from "../session-view.ts";
import { conversationOptions } from "./begin.ts";
import { beginning, BY, saying } from "./fields.ts";
import { talk } from "./talk.ts";

const NAME = "claude_direct_query";

/** A conversation of one prompt: opened, led and closed in one call (seed 004). */
export const claudeDirectQuery = defineTool({
  name: NAME,
  title: "Ask Claude Code once",
  description: "Send one prompt in a session of its own, wait for the reply, and close the session.",
  input: z.strictObject({ ...saying, ...beginning }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  scope: "run",
  async handle({ includeThinking = false, prompt: text, ...chosen }, call, deps) {
    const options = conversationOptions(chosen, deps);
    const prompt = { text, via: NAME, limits: formsOf(call) };
    const { cursor, sessionId, withheld: warnings } = await deps.engine.open(call, { options, prompt });
    const close = async () => deps.engine.close(call.principal, sessionId, BY);
    return talk(viewSession(sessionId, call, deps), { cursor, text, includeThinking, close, warnings }, call, deps);
  },
});
