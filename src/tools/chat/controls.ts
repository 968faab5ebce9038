import { z } from "zod";
import { interrupt, close } from "../../engine/actions/lifecycle.ts";
import { setPermissionMode, setModel } from "../../engine/actions/process-control.ts";
import { defineTool, type ToolCall, type ToolDeps } from "../define.ts";
import { actingCaller } from "../scope.ts";
import { Mode, Model, askModel } from "./fields.ts";

/** Interrupts the running turn; the conversation continues. */
export const claudeChatInterrupt = defineTool({
  name: "claude_chat_interrupt",
  title: "Interrupt a conversation",
  description: "Interrupt the running turn of a session. interrupted is false when no turn was running.",
  input: z.strictObject(interrupt.fields),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scope: interrupt.scope,
  async handle({ sessionId }, call, deps) {
    const { interrupted } = await interrupt.run(actingCaller(call, deps), { sessionId });
    return { answer: { interrupted, sessionId } };
  },
});

/** Changes the permission mode. */
export const claudeChatMode = defineTool({
  name: "claude_chat_mode",
  title: "Change the permission mode",
  description: "Change the permission mode of a session.",
  input: z.strictObject({ ...setPermissionMode.fields, permissionMode: Mode }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  scope: setPermissionMode.scope,
  async handle({ permissionMode, sessionId }, call, deps) {
    await setPermissionMode.run(actingCaller(call, deps), { sessionId, permissionMode });
    return { answer: { sessionId, permissionMode } };
  },
});

/** Changes the model, from the next request on. */
export const claudeChatModel = defineTool({
  name: "claude_chat_model",
  title: "Change the model",
  description:
    "Change the model of a session. resolvedModel is its full name, or null if Claude Code has not reported it.",
  input: z.strictObject({ ...setModel.fields, model: Model }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  scope: setModel.scope,
  async handle({ model, sessionId }, call, deps) {
    await setModel.run(actingCaller(call, deps), { sessionId, model });
    const { state } = await deps.engine.get(call.principal, sessionId);
    // Never start Claude Code only to ask for the full name.
    const runs = state.process.phase === "live";
    const resolvedModel = runs ? await askModel(sessionId, call, deps) : null;
    return { answer: { sessionId, requestedModel: model, resolvedModel } };
  },
});

/** Closes a conversation permanently. */
export const claudeSessionClose = defineTool({
  name: "claude_session_close",
  title: "Close a conversation",
  description:
    "Close a session permanently and end its Claude Code process. activeSessions: number of your other open sessions.",
  input: z.strictObject(close.fields),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scope: close.scope,
  async handle({ sessionId }, call, deps) {
    await close.run(actingCaller(call, deps), { sessionId });
    return { answer: { sessionId, activeSessions: await activeSessions(call, deps) } };
  },
});

const PAGE = 200;

/** Counts the caller's sessions that accept prompts, with or without a running process. */
async function activeSessions({ principal }: ToolCall, { engine }: ToolDeps): Promise<number> {
  const open = { principal, limit: PAGE, statuses: ["running", "waiting_permission", "idle", "error"] as const };
  let active = 0;
  let before: { updatedAt: number; id: string } | undefined;
  do {
    const page = await engine.list({ ...open, ...(before && { before }) });
    active += page.length;
    before = page.length < PAGE ? undefined : page.at(-1);
  } while (before);
  return active;
}
