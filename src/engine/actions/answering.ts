import { z } from "zod";
import { Answers } from "../../domain/approvals/questions.ts";
import { JsonObject } from "../../domain/json.ts";
import { PermissionUpdate } from "../../domain/permission.ts";
import type { AnswerRequest } from "../api.ts";
import { defineAction, defineRequest } from "./action.ts";
import { refuseMalformedUpdates } from "./malformed-rules.ts";
import { DenyMessage, RequestId, SessionId } from "./input.ts";

/** Actions on requests of Claude Code. */

/** Answers a request. Each surface says in its own words which fields go together. */
export const answer = defineRequest({
  name: "answer",
  scope: "approve",
  fields: {
    sessionId: SessionId,
    requestId: RequestId,
    decision: z.enum(["allow", "deny", "allow_for_session"]),
    denyMessage: DenyMessage.exactOptional(),
    interrupt: z.boolean().exactOptional(),
    updatedInput: JsonObject.exactOptional(),
    updatedPermissions: z.array(PermissionUpdate).max(100).exactOptional(),
    answers: Answers.exactOptional(),
  },
  run: async ({ caller, engine }, { request, sessionId }: { sessionId: string; request: AnswerRequest }) => {
    refuseMalformedUpdates(request.updatedPermissions);
    return engine.answer(caller, sessionId, request);
  },
});

/** Keeps a request open for more time, with the present approver (`Engine.extend`). */
export const moreTime = defineAction({
  name: "more_time",
  scope: "approve",
  fields: { sessionId: SessionId, requestId: RequestId },
  run: async ({ caller: { principal }, engine }, { requestId, sessionId }) =>
    engine.extend(principal, sessionId, requestId),
});
