import { randomUUID } from "node:crypto";
import { isWithin, type Bound } from "../../domain/approvals/risk.ts";
import type { CommandOf } from "../../domain/command.ts";
import { AppError } from "../../domain/error.ts";
import type { Ask } from "../../domain/permission.ts";
import type { Caller } from "../../domain/principal.ts";
import type { AnswerRequest } from "../api.ts";
import { boundOf } from "../bounds/bound.ts";
import { decisionWithin } from "../bounds/updates.ts";
import { checkAnswers, checkDecision, type Gate } from "../gate.ts";
import type { AgentRuntime, SessionBackend, SessionRecord } from "../ports.ts";
import { judge, type Rules } from "../rules/judge.ts";
import { decisionOf, rememberable, withinPlaces } from "./decision.ts";

interface Means {
  readonly backend: SessionBackend;
  readonly runtime: AgentRuntime;
  readonly gate: Gate;
  readonly limits: { readonly rules: Rules };
}

/** An answer as it goes to the session's owner, and what of it was left out, because its caller may not decide so much. */
export async function answerCommand(
  means: Means,
  caller: Caller,
  record: SessionRecord,
  request: AnswerRequest,
): Promise<{ command: CommandOf<"answer">; withheld: readonly string[] }> {
  checkAnswers(caller, request);
  const { backend, gate, runtime } = means;
  const { by, requestId } = request;
  const meant = decisionOf(request);
  checkDecision(gate, meant);
  // People decide for themselves; a model decides what it may.
  const bound = by === "caller" ? boundOf(gate.callerApproves, caller, record.spec.callerApproves) : "all";
  await checkChanged(means, record, request, bound);
  const { decision: bounded, withheld } = decisionWithin(meant, bound);
  const decision = await withinPlaces(runtime, record, bounded);
  const forSession = request.decision === "allow_for_session";
  const remember = forSession ? await rememberable(backend, record, requestId) : undefined;
  const data = { requestId, decision, by, forSession, ...(remember && { remember }) };
  return { command: { id: randomUUID(), principal: caller.principal, kind: "answer", data }, withheld };
}

/** What is to run with another input is another request: it was neither judged by the rules nor by its risk before. */
async function checkChanged(means: Means, record: SessionRecord, request: AnswerRequest, bound: Bound): Promise<void> {
  const { requestId, updatedInput } = request;
  const asked = updatedInput && (await askOf(means.backend, record, requestId));
  if (!asked || asked.kind === "question") return;
  const { principal, spec } = record;
  const changed = { ...asked, input: updatedInput };
  const judged = { ...changed, ...(await means.runtime.judge(principal, spec, changed)) };
  const verdict = judge(judged, means.limits.rules, spec.cwd);
  if (verdict?.behavior === "deny") {
    throw new AppError("PERMISSION_DENIED", `updatedInput: a rule of the operator denies it: ${verdict.rule}.`);
  }
  const { level = "all" } = judged.risk ?? {};
  if (isWithin(level, bound)) return;
  const problem = `${asked.toolName} with it (${level}) is more than a caller may approve here (${bound}).`;
  throw new AppError("PERMISSION_DENIED", `updatedInput: ${problem} Allow it as it was asked, or deny it.`);
}

async function askOf(backend: SessionBackend, record: SessionRecord, requestId: string): Promise<Ask | undefined> {
  const open = record.state.asks.find((ask) => ask.requestId === requestId);
  const [event] = open ? await backend.read(record.id, open.eventId, 1) : [];
  return event?.type === "permission.asked" || event?.type === "question.asked" ? event.data : undefined;
}
