import type { SessionEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";

/**
 * What becomes of a request, for the audit log: asked, gone on to the next who may answer, answered and by whom. Read off
 * the session's log, so that no way of answering is missed; never what was said.
 */
export function requestEntry({ data, type }: SessionEvent): JsonObject | undefined {
  if (type === "permission.asked" || type === "question.asked") {
    const { requestId, risk, toolName } = data;
    return { action: "asked", requestId, toolName, ...(risk && { risk: risk.level }) };
  }
  if (type === "request.passed") {
    const { from, requestId, to, why } = data;
    return { action: "passed", requestId, from, to, why };
  }
  if (type !== "permission.answered" && type !== "question.answered") return undefined;
  const { behavior, by, forSession, requestId, rule, toolName } = data;
  const how = { ...(rule !== undefined && { rule }), ...(forSession && { forSession }) };
  return { action: "answered", requestId, toolName, decision: behavior, by, ...how };
}
