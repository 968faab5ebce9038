import { diff as readDiff } from "../../../engine/actions/diff.ts";
import { fit } from "../../../view/size.ts";
import { offer } from "./action.ts";
import { ANSWER_BYTES } from "./view.ts";

export const diff = offer(readDiff, {
  present: ({ files, git }, { sessionId }, _, { mask }) => {
    const { cut, value } = fit({ files, ...(git && { git: mask(git) }) }, ANSWER_BYTES - 100, ["git"]);
    return { sessionId, ...value, ...(cut && { truncated: true }) };
  },
});
