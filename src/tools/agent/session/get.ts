import { get as getSession } from "../../../engine/actions/reading.ts";
import { jsonBytes } from "../../../view/size.ts";
import { actorOf } from "../../scope.ts";
import { offerAs } from "./action.ts";
import { checkSensitive, IncludeSensitive } from "./sensitive.ts";
import { ANSWER_BYTES, publicView, rememberedOf, sensitiveView } from "./view.ts";

/** What stands around the session in the answer. */
const AROUND = 20;

const fields = { ...getSession.fields, includeSensitive: IncludeSensitive };

export const get = offerAs(getSession, fields, async ({ includeSensitive = false, ...which }, call, deps) => {
  checkSensitive(deps, includeSensitive ? ["includeSensitive"] : []);
  const record = await getSession.run(actorOf(call, deps), which);
  if (!includeSensitive) return { sessions: [{ ...publicView(record), ...rememberedOf(record) }] };
  const remembered = rememberedOf(record);
  const room = ANSWER_BYTES - AROUND - jsonBytes(remembered);
  return { sessions: [{ ...(await sensitiveView(record, room, call, deps)), ...remembered }] };
});
