import { CALLER } from "../../domain/approvals/answer-source.ts";
import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { PermissionUpdate } from "../../domain/permission.ts";
import { answer } from "../../engine/actions/answering.ts";
import type { AnswerRequest } from "../../engine/api.ts";
import { correctToolName } from "../check-options.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import { actingCaller } from "../scope.ts";
import type { ReadableSession } from "../readable-session.ts";
import { withAnswers, type Answers } from "../../domain/approvals/questions.ts";

/** Sends the caller's answer to a request. */

export interface Response {
  readonly requestId?: string;
  readonly decision?: AnswerRequest["decision"];
  readonly denyMessage?: string;
  readonly interrupt?: boolean;
  readonly permissionOptions?: { updatedInput?: JsonObject; updatedPermissions?: PermissionUpdate[] };
  readonly answers?: Answers;
}

export const Responded = z.object({
  /** Default of the caller's `cursor`. */
  cursor: z.int(),
  /** First event that counts as news. Earlier requests are answered, or shown at once. */
  waitFrom: z.int(),
  /** True if further requests are open. */
  isMoreAsked: z.boolean(),
  /** Parts of the answer left out, a sentence each. */
  withheld: z.array(z.string()),
});
type Responded = z.infer<typeof Responded>;

export async function respond(
  view: ReadableSession,
  response: Response & { action: "respond_permission" | "answer_question" },
  call: ToolCall,
  deps: ToolDeps,
): Promise<Responded> {
  const request =
    response.action === "answer_question" ? await answerToQuestion(view, response) : answerToPermission(response);
  const before = await view.record();
  const { cursor, withheld } = await answer.run(actingCaller(call, deps), { sessionId: view.id, request });
  const { state } = await view.record();
  const open = before.state.requests.find(({ requestId }) => requestId === request.requestId);
  // The caller has read up to the request. Without a `cursor`, do not send hours of log again.
  return {
    cursor: open ? open.eventId + 1 : cursor,
    waitFrom: cursor,
    isMoreAsked: state.requests.length > 0,
    withheld: [...withheld],
  };
}

function answerToPermission({ answers, ...response }: Response): AnswerRequest {
  const { decision, denyMessage, interrupt, permissionOptions } = response;
  const requestId = requestIdOf(response);
  if (answers !== undefined) throw invalidArgument("answers", "is only for action answer_question.");
  if (decision === undefined) throw invalidArgument("decision", "is required: one of allow, deny, allow_for_session.");
  const forDeny = denyMessage === undefined ? interrupt && "interrupt" : "denyMessage";
  if (decision !== "deny" && forDeny) throw invalidArgument(forDeny, "is only allowed with decision deny.");
  if (decision !== "allow" && permissionOptions !== undefined) {
    throw invalidArgument("permissionOptions", "is only allowed with decision allow.");
  }
  return {
    requestId,
    decision,
    by: CALLER,
    ...(denyMessage !== undefined && { denyMessage }),
    ...(interrupt && { interrupt }),
    ...permissionOptions,
    ...(permissionOptions?.updatedPermissions && {
      updatedPermissions: permissionOptions.updatedPermissions.map(withRightNames),
    }),
  };
}

/** Corrects tool names: Claude Code ignores a rule with a misspelt tool, even a deny rule. */
function withRightNames(update: PermissionUpdate): PermissionUpdate {
  if (!("rules" in update)) return update;
  return { ...update, rules: update.rules.map((rule) => ({ ...rule, toolName: correctToolName(rule.toolName) })) };
}

const FOR_PERMISSIONS = ["decision", "denyMessage", "interrupt", "permissionOptions"] as const;

async function answerToQuestion(view: ReadableSession, response: Response): Promise<AnswerRequest> {
  const requestId = requestIdOf(response);
  const stray = FOR_PERMISSIONS.find((field) => response[field] !== undefined && response[field] !== false);
  if (stray !== undefined) {
    throw invalidArgument(stray, "is only for action respond_permission, which can also deny a question.");
  }
  const { state } = await view.record();
  const open = state.requests.find((request) => request.requestId === requestId);
  const [event] = open ? await view.read(open.eventId, 1) : [];
  if (event?.type === "permission.asked") {
    const advice = "Answer it with action respond_permission.";
    throw invalidArgument("requestId", `${requestId} is a request of the tool ${event.data.toolName}. ${advice}`);
  }
  // Pass on a request that is not open: the engine knows who has answered, and refuses.
  const input = event?.type === "question.asked" ? event.data.input : undefined;
  const updated = input && { updatedInput: withAnswers(input, response.answers) };
  return { requestId, decision: "allow", by: CALLER, ...updated };
}

function requestIdOf({ requestId }: Response): string {
  if (requestId === undefined) throw invalidArgument("requestId", "is required. Take it from actions[] of a poll.");
  return requestId;
}
