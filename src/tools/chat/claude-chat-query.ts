import { z } from "zod";
import { reply } from "../../engine/actions/begin.ts";
import { close } from "../../engine/actions/lifecycle.ts";
import { recordBegin } from "../blocking/outcome.ts";
import { defineTool, type ToolCall, type ToolDeps } from "../define.ts";
import { previousRound } from "../elicitation/rounds.ts";
import { approvalLimits, boundToClient } from "../prompt.ts";
import { actingCaller } from "../scope.ts";
import { messageFields } from "./fields.ts";
import { answerTalk, Sent, talk } from "./talk.ts";

const NAME = "claude_chat_query";

const Input = z.strictObject({
  sessionId: reply.fields.sessionId,
  ...messageFields,
  closeAfter: z.boolean().exactOptional().describe("close the session afterwards. Default: false"),
});

/** Sends a prompt in a conversation. The text is streamed while Claude Code writes, and is the answer. */
export const claudeChatQuery = defineTool({
  name: NAME,
  title: "Send a prompt in a conversation",
  description: ({ followsTasks }) =>
    followsTasks
      ? "Send a prompt to a session. Returns at once; the reply comes by itself, as a notification."
      : "Send a prompt to a session and wait for the reply. Text and tool calls are also sent as log notifications.",
  input: Input,
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  scope: reply.scope,
  isQuery: true,
  answerTask: answerTalk,
  async handle({ closeAfter = false, includeThinking = false, ...args }, call, deps) {
    const sent = Sent.parse(previousRound(NAME, call)?.work ?? (await send(args, call, deps)));
    const end = async () => void (await close.run(actingCaller(call, deps), { sessionId: sent.sessionId }));
    const said = { tool: NAME, sent, text: args.prompt, includeThinking };
    return talk({ ...said, ...(closeAfter && { close: end }) }, call, deps);
  },
});

async function send({ prompt: text, sessionId }: z.infer<typeof Input>, call: ToolCall, deps: ToolDeps): Promise<Sent> {
  const request = { text, via: NAME, limits: { ...approvalLimits(call), ...boundToClient(call) } };
  const { cursor } = await reply.run(actingCaller(call, deps), { sessionId, request });
  recordBegin(NAME, { sessionId }, call, deps);
  return { sessionId, cursor, warnings: [] };
}
