import { z } from "zod";
import { statusOf } from "../../../domain/session.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { SessionId } from "../../prompt.ts";
import { defineAction } from "./action.ts";
import { publicView } from "./view.ts";

/** What is done to a session, or to the prompts that wait in it. */

const fields = { sessionId: SessionId };
const BY = "caller";

async function told(sessionId: string, message: string, call: ToolCall, { engine }: ToolDeps) {
  return { sessions: [publicView(await engine.get(call.principal, sessionId))], message };
}

export const interrupt = defineAction({
  name: "interrupt",
  scope: "run",
  fields,
  async run({ sessionId }, call, deps) {
    const { state } = await deps.engine.get(call.principal, sessionId);
    if (!state.turn) return told(sessionId, "No turn runs in the session.", call, deps);
    await deps.engine.interrupt(call.principal, sessionId, BY);
    const message = "The turn is being interrupted; claude_code_check (until: end) tells when it has ended.";
    return told(sessionId, message, call, deps);
  },
});

export const close = defineAction({
  name: "close",
  scope: "run",
  fields,
  async run({ sessionId }, call, deps) {
    const { state } = await deps.engine.get(call.principal, sessionId);
    if (state.closed) return told(sessionId, `The session is ${statusOf(state)} already.`, call, deps);
    await deps.engine.close(call.principal, sessionId, BY);
    return told(sessionId, "The session is closed and takes no more prompts.", call, deps);
  },
});

export const remove = defineAction({
  name: "delete",
  scope: "run",
  fields,
  async run({ sessionId }, call, deps) {
    await deps.engine.delete(call.principal, sessionId, BY);
    const message = `Session ${sessionId} is deleted here. Claude Code's own transcript of it stays where it is.`;
    return { sessions: [], message };
  },
});

export const rename = defineAction({
  name: "rename",
  scope: "run",
  fields: { ...fields, title: z.string().trim().min(1).max(200).describe("for rename. Default: none") },
  async run({ sessionId, title }, call, deps) {
    await deps.engine.rename(call.principal, sessionId, title);
    return told(sessionId, "The session has its new title.", call, deps);
  },
});

export const releaseQueue = defineAction({
  name: "release_queue",
  scope: "run",
  fields,
  async run({ sessionId }, call, deps) {
    await deps.engine.queue(call.principal, sessionId, { do: "release", by: BY });
    return told(sessionId, "The prompts that were held run now, one after the other.", call, deps);
  },
});

export const dropQueue = defineAction({
  name: "drop_queue",
  scope: "run",
  fields,
  async run({ sessionId }, call, deps) {
    await deps.engine.queue(call.principal, sessionId, { do: "drop", by: BY });
    return told(sessionId, "The prompts that were held are dropped.", call, deps);
  },
});
