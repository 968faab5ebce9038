import { z } from "zod";
import { start } from "../../engine/actions/begin.ts";
import { close } from "../../engine/actions/lifecycle.ts";
import { recordBegin } from "../blocking/outcome.ts";
import { defineTool, type ToolCall, type ToolDeps } from "../define.ts";
import { previousRound } from "../elicitation/rounds.ts";
import { approvalLimits, boundToClient } from "../prompt.ts";
import { conversationOptions, sessionFields, messageFields } from "./fields.ts";
import { actingCaller } from "../scope.ts";
import { answerTalk, Sent, talk } from "./talk.ts";

const NAME = "claude_direct_query";

const Input = z.strictObject({ ...messageFields, ...sessionFields });

/** Opens a conversation, sends a prompt and closes the conversation, in a single call. */
export const claudeDirectQuery = defineTool({
  name: NAME,
  title: "Ask Claude Code once",
  description: ({ followsTasks }) =>
    followsTasks
      ? "Send one prompt in a session of its own, which is closed afterwards. Returns at once; the reply comes by itself, as a notification."
      : "Send one prompt in a session of its own, wait for the reply, and close the session.",
  input: Input,
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  scope: start.scope,
  isQuery: true,
  answerTask: answerTalk,
  async handle({ includeThinking = false, ...args }, call, deps) {
    const sent = Sent.parse(previousRound(NAME, call)?.work ?? (await send(args, call, deps)));
    const end = async () => void (await close.run(actingCaller(call, deps), { sessionId: sent.sessionId }));
    return talk({ tool: NAME, sent, text: args.prompt, includeThinking, close: end }, call, deps);
  },
});

async function send({ prompt: text, ...chosen }: z.infer<typeof Input>, call: ToolCall, deps: ToolDeps): Promise<Sent> {
  const options = conversationOptions(chosen, deps);
  const prompt = { text, via: NAME, limits: { ...approvalLimits(call), ...boundToClient(call) } };
  const { cursor, sessionId, withheld } = await start.run(actingCaller(call, deps), { options, prompt });
  recordBegin(NAME, { sessionId }, call, deps);
  return { sessionId, cursor, warnings: [...withheld] };
}
