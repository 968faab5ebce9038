import type { JsonObject } from "../../domain/json.ts";
import { answerNow } from "../check/answer.ts";
import { readRequest } from "../check/request.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import type { SessionView } from "../session-view.ts";

const HOW =
  "Answer each of actions[] with claude_code_check (until: end, cursor: nextCursor); that waits for the rest.";

/** What is asked, as claude_code_check tells it, for a call that returns before its turn has ended. */
export async function tellRequests(
  view: SessionView,
  { cursor, maxBytes }: { cursor: number; maxBytes: number },
  call: ToolCall,
  deps: ToolDeps,
): Promise<JsonObject> {
  const without = { includeEvents: false, includeResult: false };
  const request = readRequest({ waitMs: 0, maxBytes, pollOptions: without }, deps.limits);
  const told = await answerNow({ ...request, targets: [{ view, cursor }], several: false }, call, deps);
  const { actions, status, truncated, truncatedFields } = told;
  const cut = truncated === undefined ? {} : { truncated, truncatedFields };
  // As they are told here they count as shown: nothing may be cut of them afterwards.
  return { status, actions, nextCursor: cursor, next: HOW, ...cut };
}
