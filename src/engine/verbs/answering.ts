import { CALLER } from "../../domain/approvals/approver-name.ts";
import { randomUUID } from "node:crypto";
import { rulesToRemember, type Remember } from "../../domain/approvals/remembered.ts";
import type { CommandOf } from "../../domain/command.ts";
import { requestOf } from "../../domain/event.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import type { Caller } from "../../domain/principal.ts";
import type { AnswerRequest } from "../api.ts";
import { boundOf } from "../bounds/bound.ts";
import { decisionWithin } from "../bounds/updates.ts";
import { checkAnswers, checkDecision } from "../gate.ts";
import { gateUnder, type Operator } from "../operator.ts";
import type { AgentRuntime, SessionBackend, SessionRecord } from "../ports.ts";
import { decisionOf, withinPlaces } from "./decision.ts";

interface Means extends Operator {
  readonly backend: SessionBackend;
  readonly runtime: AgentRuntime;
}

/** An answer as it goes to the session's owner, and what of it was left out, because its caller may not decide so much. */
export async function answerCommand(
  means: Means,
  caller: Caller,
  record: SessionRecord,
  request: AnswerRequest,
): Promise<{ command: CommandOf<"answer">; withheld: readonly string[] }> {
  checkAnswers(caller, request);
  const { runtime } = means;
  const gate = gateUnder(means, record);
  const { by, requestId } = request;
  const reach = reachOf(caller, request);
  const meant = decisionOf(request);
  checkDecision(gate, meant);
  // People decide for themselves; a model decides what it may.
  const isBound = !reach.decides && (by === CALLER || reach.asCaller);
  const bound = isBound ? boundOf(gate.callerApproves, caller, record.spec.callerApproves) : "all";
  const asked = await readRequest(means.backend, record, requestId);
  const { decision: bounded, withheld } = decisionWithin(meant, bound);
  const decision = await withinPlaces(runtime, record, bounded);
  const forSession = request.decision === "allow_for_session";
  const remember = forSession && asked ? rememberedBy(asked) : undefined;
  const data = { requestId, decision, by, ...reach, bound, forSession, ...(remember && { remember }) };
  return { command: { id: randomUUID(), principal: caller.principal, kind: "answer", data }, withheld };
}

/**
 * A program that answers where people do is not taken for one of them: what it allows counts for no more than the calling
 * model's answer, unless it has the scope decide. To deny is harmless.
 */
function reachOf(
  { scopes }: Caller,
  { asPerson = false, by, decision }: AnswerRequest,
): Pick<CommandOf<"answer">["data"], "asCaller" | "decides"> {
  if (scopes.includes("decide")) return { decides: true };
  return by === CALLER || asPerson || decision === "deny" ? {} : { asCaller: true };
}

interface Asked {
  readonly request: PermissionRequest;
  readonly eventId: number;
}

function rememberedBy({ request, eventId }: Asked): Remember | undefined {
  if (request.kind === "question") return undefined;
  return { rules: rulesToRemember(request), level: request.risk?.level ?? "all", eventId };
}

/** Undefined where it is not open: who has answered it, the owner knows. */
async function readRequest(
  backend: SessionBackend,
  record: SessionRecord,
  requestId: string,
): Promise<Asked | undefined> {
  const open = record.state.requests.find((each) => each.requestId === requestId);
  const request = open && requestOf((await backend.log.read(record.id, open.eventId, 1)).at(0));
  return request && { request, eventId: open.eventId };
}
