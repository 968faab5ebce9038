import { SessionId } from "../../prompt.ts";
import { defineAction } from "./action.ts";
import { checkSensitive, IncludeSensitive } from "./sensitive.ts";
import { ANSWER_BYTES, publicView, sensitiveView } from "./view.ts";

/** What stands around the session in the answer. */
const AROUND = 20;

export const get = defineAction({
  name: "get",
  scope: "read",
  fields: { sessionId: SessionId, includeSensitive: IncludeSensitive },
  async run({ sessionId, includeSensitive = false }, call, deps) {
    checkSensitive(deps, includeSensitive ? ["includeSensitive"] : []);
    const record = await deps.engine.get(call.principal, sessionId);
    if (!includeSensitive) return { sessions: [publicView(record)] };
    return { sessions: [await sensitiveView(record, ANSWER_BYTES - AROUND, call, deps)] };
  },
});
