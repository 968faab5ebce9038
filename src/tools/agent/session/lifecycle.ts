import * as actions from "../../../engine/actions/lifecycle.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { actingCaller } from "../../scope.ts";
import { offer, offerAs } from "./action.ts";
import { publicView, rememberedOf } from "./session-fields.ts";

/** Actions on a session, its queued prompts and its remembered answers. */

interface OfSession {
  readonly sessionId: string;
}

async function messageAnswer({ sessionId }: OfSession, message: string, { principal }: ToolCall, { engine }: ToolDeps) {
  return { sessions: [publicView(await engine.get(principal, sessionId))], message };
}

export const interrupt = offer(actions.interrupt, {
  present: async ({ interrupted }, args, call, deps) => {
    const wait = "The turn is being interrupted. claude_code_check (until: end) returns once it has ended.";
    return messageAnswer(args, interrupted ? wait : "No turn is running in the session.", call, deps);
  },
});

const { sessionId } = actions.cancel.fields;

export const cancel = offerAs(actions.cancel, { sessionId }, async (args, call, deps) => {
  const { already } = await actions.cancel.run(actingCaller(call, deps), { ...args, reason: "cancelled by caller" });
  const isNow = already === undefined ? "is cancelled and takes no more prompts" : `was already ${already}`;
  return messageAnswer(args, `Session ${args.sessionId} ${isNow}.`, call, deps);
});

export const close = offer(actions.close, {
  present: async ({ already }, args, call, deps) => {
    const isNow = already === undefined ? "closed and takes no more prompts" : `${already} already`;
    return messageAnswer(args, `The session is ${isNow}.`, call, deps);
  },
});

export const remove = offer(actions.remove, {
  present: (_, args) => {
    const message = `Session ${args.sessionId} is deleted from this server. Claude Code's own transcript is kept.`;
    return { sessions: [], message };
  },
});

export const rename = offer(actions.rename, {
  words: { title: "for rename. Default: none" },
  present: async (_, args, call, deps) => messageAnswer(args, "The session is renamed.", call, deps),
});

export const releaseQueue = offer(actions.releaseQueue, {
  present: async (_, args, call, deps) =>
    messageAnswer(args, "The held prompts run now, one after another.", call, deps),
});

export const dropQueue = offer(actions.dropQueue, {
  present: async (_, args, call, deps) => messageAnswer(args, "The held prompts are dropped.", call, deps),
});

/** Revokes an answer remembered until the end of the session. */
export const revoke = offer(actions.revoke, {
  words: { rule: "for revoke. Default: all" },
  present: async (revoked, args, { principal }, { engine }) => {
    const record = await engine.get(principal, args.sessionId);
    const message = `Asked again from now on: ${revoked.join(", ")}.`;
    return { sessions: [{ ...publicView(record), ...rememberedOf(record) }], message };
  },
});

/** Writes a file on the server's machine, because it is too large for an answer, and not for the model to read. */
export const pack = offer(actions.pack, {
  present: async ({ bytes, file, notes }, args, call, deps) => {
    const take = `On another machine: claude-agents-mcp sessions unpack FILE. ${notes.join(" ")}`;
    return messageAnswer(args, `The session is packed in ${file} (${String(bytes)} bytes). ${take}`, call, deps);
  },
});
