import { z } from "zod";
import { Dialog } from "../blocking/dialog.ts";
import { recordBegin } from "../blocking/record.ts";
import { defineTool } from "../define.ts";
import { formsOf } from "../prompt.ts";
import { viewSession } from "../session-view.ts";
import { BY, ofSession, saying } from "./fields.ts";
import { Sent, talk } from "./talk.ts";

const NAME = "claude_chat_query";

const Input = z.strictObject({
  ...ofSession,
  ...saying,
  closeAfter: z.boolean().exactOptional().describe("close the session behind it. Default: false"),
});

/** One prompt of a conversation: its text is told while it is written, and is the answer (seed 004). */
export const claudeChatQuery = defineTool({
  name: NAME,
  title: "Say something in a conversation",
  description:
    "Send a prompt to a session and wait for the reply; what Claude Code says and does is sent as log notifications.",
  input: Input,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  scope: "run",
  isQuery: true,
  async handle({ closeAfter = false, includeThinking = false, prompt: text, sessionId }, call, deps) {
    const dialog = new Dialog(NAME, { call, deps });
    if (!dialog.work) {
      const prompt = { text, via: NAME, limits: formsOf(call) };
      const { cursor } = await deps.engine.prompt(call.principal, sessionId, prompt);
      recordBegin(NAME, { sessionId }, call, deps);
      dialog.begin({ sessionId, cursor, warnings: [] });
    }
    const { sessionId: id, ...sent } = Sent.parse(dialog.work);
    const close = async () => deps.engine.close(call.principal, id, BY);
    const view = viewSession(id, call, deps);
    return talk(view, { ...sent, dialog, text, includeThinking, ...(closeAfter && { close }) }, call, deps);
  },
});
