import { jsonBytes } from "../../present/size.ts";
import { SessionId } from "../../prompt.ts";
import { defineAction } from "./action.ts";
import { checkSensitive, IncludeSensitive } from "./sensitive.ts";
import { ANSWER_BYTES, publicView, rememberedOf, sensitiveView } from "./view.ts";

/** What stands around the session in the answer. */
const AROUND = 20;

export const get = defineAction({
  name: "get",
  scope: "read",
  fields: { sessionId: SessionId, includeSensitive: IncludeSensitive },
  async run({ sessionId, includeSensitive = false }, call, deps) {
    checkSensitive(deps, includeSensitive ? ["includeSensitive"] : []);
    const record = await deps.engine.get(call.principal, sessionId);
    if (!includeSensitive) return { sessions: [{ ...publicView(record), ...rememberedOf(record) }] };
    const remembered = rememberedOf(record);
    const room = ANSWER_BYTES - AROUND - jsonBytes(remembered);
    return { sessions: [{ ...(await sensitiveView(record, room, call, deps)), ...remembered }] };
  },
});
