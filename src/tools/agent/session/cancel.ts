import type { JsonObject } from "../../../domain/json.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { SessionId } from "../../prompt.ts";
import { defineAction } from "./action.ts";
import { publicView } from "./view.ts";

export const cancel = defineAction({
  name: "cancel",
  scope: "run",
  fields: { sessionId: SessionId },
  async run({ sessionId }, call, deps) {
    const message = await cancelOnce(sessionId, call, deps);
    const record = await deps.engine.get(call.principal, sessionId);
    return { sessions: [publicView(record)], ...message };
  },
});

async function cancelOnce(sessionId: string, { principal }: ToolCall, { engine }: ToolDeps): Promise<JsonObject> {
  const { state } = await engine.get(principal, sessionId);
  if (state.closed) return { message: `Session ${sessionId} was already ${state.closed.reason}.` };
  await engine.cancel(principal, sessionId, { by: "caller", reason: "cancelled by caller" });
  return { message: `Session ${sessionId} is cancelled and takes no more prompts.` };
}
