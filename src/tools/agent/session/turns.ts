import { invalidArgument } from "../../../domain/error.ts";
import type { JsonObject } from "../../../domain/json.ts";
import { statusOf } from "../../../domain/session.ts";
import { continueTurn, verify as runCommands } from "../../../engine/actions/begin.ts";
import { receipt as readReceipt } from "../../../engine/actions/receipts.ts";
import { receiptPage } from "../../../view/receipt.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { approvalLimits } from "../../prompt.ts";
import { actingCaller } from "../../scope.ts";
import { pollInterval, turnWait } from "../../waiting.ts";
import { offerAs } from "./action.ts";
import { PageToken } from "./reading.ts";
import { ANSWER_BYTES } from "./session-fields.ts";

/** Shows receipts of turns, and begins turns without a prompt. */

const RECEIPT_FIELDS = {
  ...readReceipt.fields,
  turn: readReceipt.fields.turn.describe("Default: the last"),
  pageToken: PageToken,
};

export const receipt = offerAs(readReceipt, RECEIPT_FIELDS, async ({ pageToken, ...which }, call, deps) => {
  const found = await readReceipt.run(actingCaller(call, deps), which);
  const from = pageToken === undefined ? 0 : entryOf(pageToken);
  const { next, page } = receiptPage(found, { from, maxBytes: ANSWER_BYTES - AROUND });
  return {
    sessionId: which.sessionId,
    receipt: page,
    ...(next !== undefined && { nextPageToken: String(next) }),
  };
});

/** Bytes around the receipt in an answer. */
const AROUND = 300;

/** Parses the number of the first entry of a page. */
function entryOf(token: string): number {
  if (/^[1-9]\d{0,6}$/.test(token)) return Number(token);
  throw invalidArgument("pageToken", "is not valid. Pass nextPageToken unchanged, or leave it out.");
}

const VERIFY_FIELDS = {
  ...runCommands.fields,
  commands: runCommands.fields.commands.describe("Default: the session's"),
};

export const verify = offerAs(runCommands, VERIFY_FIELDS, async (args, call, deps) => {
  const begun = await runCommands.run(actingCaller(call, deps), { ...args, limits: approvalLimits(call) });
  return answerBegun(args.sessionId, begun, call, deps);
});

export const goOn = offerAs(continueTurn, continueTurn.fields, async ({ sessionId }, call, deps) => {
  const begun = await continueTurn.run(actingCaller(call, deps), { sessionId, limits: approvalLimits(call) });
  return answerBegun(sessionId, begun, call, deps);
});

/** Answers like `claude_code_reply` without a wait. */
async function answerBegun(
  sessionId: string,
  { cursor: nextCursor }: { readonly cursor: number },
  { principal }: ToolCall,
  deps: ToolDeps,
): Promise<JsonObject> {
  const { state } = await deps.engine.get(principal, sessionId);
  return { sessionId, status: statusOf(state), ...turnWait(state, deps.now()), nextCursor, ...pollInterval(state) };
}
