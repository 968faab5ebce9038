import { z } from "zod";
import { setModel } from "../../engine/actions/process.ts";
import { defineTool } from "../define.ts";
import { actorOf } from "../scope.ts";
import { Model } from "./fields.ts";
import { liveModel } from "./live-model.ts";

/** Another model from the next request on (seed 004). */
export const claudeChatModel = defineTool({
  name: "claude_chat_model",
  title: "Change the model",
  description:
    "Change the model of a session. resolvedModel is its real name, or null when Claude Code has not said it.",
  input: z.strictObject({ ...setModel.fields, model: Model }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  scope: setModel.scope,
  async handle({ model, sessionId }, call, deps) {
    await setModel.run(actorOf(call, deps), { sessionId, model });
    const { state } = await deps.engine.get(call.principal, sessionId);
    // Where no Claude Code runs, none is started only to ask it.
    const runs = state.process.phase === "live";
    const resolvedModel = runs ? await liveModel(sessionId, call, deps) : null;
    return { answer: { sessionId, requestedModel: model, resolvedModel } };
  },
});
