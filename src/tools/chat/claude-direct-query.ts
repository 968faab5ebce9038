import { z } from "zod";
import { start } from "../../engine/actions/begin.ts";
import { close } from "../../engine/actions/lifecycle.ts";
import { Dialog } from "../blocking/dialog.ts";
import { recordBegin } from "../blocking/record.ts";
import { defineTool } from "../define.ts";
import { formsOf } from "../prompt.ts";
import { viewSession } from "../session-view.ts";
import { conversationOptions } from "./begin.ts";
import { actorOf } from "../scope.ts";
import { beginning, saying } from "./fields.ts";
import { Sent, talk } from "./talk.ts";

const NAME = "claude_direct_query";

/** A conversation of one prompt: opened, led and closed in one call (seed 004). */
export const claudeDirectQuery = defineTool({
  name: NAME,
  title: "Ask Claude Code once",
  description: "Send one prompt in a session of its own, wait for the reply, and close the session.",
  input: z.strictObject({ ...saying, ...beginning }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  scope: start.scope,
  isQuery: true,
  async handle({ includeThinking = false, prompt: text, ...chosen }, call, deps) {
    const dialog = new Dialog(NAME, { call, deps });
    if (!dialog.work) {
      const options = conversationOptions(chosen, deps);
      const prompt = { text, via: NAME, limits: formsOf(call) };
      const { cursor, sessionId, withheld } = await start.run(actorOf(call, deps), { options, prompt });
      recordBegin(NAME, { sessionId }, call, deps);
      dialog.begin({ sessionId, cursor, warnings: [...withheld] });
    }
    const { sessionId, ...sent } = Sent.parse(dialog.work);
    const end = async () => void (await close.run(actorOf(call, deps), { sessionId }));
    return talk(viewSession(sessionId, call, deps), { ...sent, dialog, text, includeThinking, close: end }, call, deps);
  },
});
