import { randomUUID } from "node:crypto";
import { rulesToRemember, type Remember } from "../../domain/approvals/remembered.ts";
import { isWithin, type Bound } from "../../domain/approvals/risk.ts";
import type { CommandOf } from "../../domain/command.ts";
import { AppError } from "../../domain/error.ts";
import { askOf } from "../../domain/event.ts";
import type { Ask } from "../../domain/permission.ts";
import type { Caller } from "../../domain/principal.ts";
import type { AnswerRequest } from "../api.ts";
import { boundOf } from "../bounds/bound.ts";
import { decisionWithin } from "../bounds/updates.ts";
import { checkAnswers, checkDecision, type Gate } from "../gate.ts";
import type { AgentRuntime, SessionBackend, SessionRecord } from "../ports.ts";
import { judge, type Rules } from "../rules/judge.ts";
import { decisionOf, withinPlaces } from "./decision.ts";

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
  const { gate, runtime } = means;
  const { by, requestId, updatedInput } = request;
  const meant = decisionOf(request);
  checkDecision(gate, meant);
  // People decide for themselves; a model decides what it may.
  const bound = by === "caller" ? boundOf(gate.callerApproves, caller, record.spec.callerApproves) : "all";
  const asked = await readAsk(means.backend, record, requestId);
  if (asked && updatedInput) await checkChanged(means, record, { ...asked.ask, input: updatedInput }, bound);
  const { decision: bounded, withheld } = decisionWithin(meant, bound);
  const decision = await withinPlaces(runtime, record, bounded);
  const forSession = request.decision === "allow_for_session";
  const remember = forSession && asked ? rememberedBy(asked) : undefined;
  const data = { requestId, decision, by, forSession, ...(remember && { remember }) };
  return { command: { id: randomUUID(), principal: caller.principal, kind: "answer", data }, withheld };
}

/** What is to run with another input is another request: it was neither judged by the rules nor by its risk before. */
async function checkChanged(
  means: Means,
  { principal, spec }: SessionRecord,
  changed: Ask,
  bound: Bound,
): Promise<void> {
  if (changed.kind === "question") return;
  const judged = { ...changed, ...(await means.runtime.judge(principal, spec, changed)) };
  const verdict = judge(judged, means.limits.rules, spec.cwd);
  if (verdict?.behavior === "deny") {
    throw new AppError("PERMISSION_DENIED", `updatedInput: a rule of the operator denies it: ${verdict.rule}.`);
  }
  const { level = "all" } = judged.risk ?? {};
  if (isWithin(level, bound)) return;
  const problem = `${changed.toolName} with it (${level}) is more than a caller may approve here (${bound}).`;
  throw new AppError("PERMISSION_DENIED", `updatedInput: ${problem} Allow it as it was asked, or deny it.`);
}

interface Asked {
  readonly ask: Ask;
  readonly eventId: number;
}

function rememberedBy({ ask, eventId }: Asked): Remember | undefined {
  if (ask.kind === "question") return undefined;
  return { rules: rulesToRemember(ask), level: ask.risk?.level ?? "all", eventId };
}

/** Undefined where it is not open: who has answered it, the owner knows. */
async function readAsk(backend: SessionBackend, record: SessionRecord, requestId: string): Promise<Asked | undefined> {
  const open = record.state.asks.find((each) => each.requestId === requestId);
  const ask = open && askOf((await backend.read(record.id, open.eventId, 1)).at(0));
  return ask && { ask, eventId: open.eventId };
}
