import { rulesToRemember } from "../domain/approvals/remembered.ts";
import { requestOf, type EventType, type StoredEvent } from "../domain/event.ts";
import { type PermissionRequest, type OpenRequest } from "../domain/permission.ts";
import type { Principal } from "../domain/principal.ts";
import { uncheckedFor } from "../engine/policy/unchecked.ts";
import type { SessionRecord } from "../engine/ports.ts";
import type { Sources } from "./sources.ts";
import { noneIfRefused } from "./titles.ts";
import type { Decided, PendingRequest } from "./wire.ts";

/** Open requests and recent decisions, as shown on the page. */

/** Maximum number of sessions that `pendingOf` reads. */
const MAX_SESSIONS = 200;

/** Open requests in the sessions of `principal`, oldest first. */
export async function pendingOf(sources: Sources, principal: Principal): Promise<PendingRequest[]> {
  const waiting = await sources.engine.list({ principal, statuses: ["waiting_permission"], limit: MAX_SESSIONS });
  const requests = await Promise.all(waiting.map(async (record) => pendingIn(sources, record)));
  return requests.flat().toSorted((a, b) => a.createdAt - b.createdAt);
}

async function pendingIn({ agents, engine, titles }: Sources, record: SessionRecord): Promise<PendingRequest[]> {
  const title = await titles.of(record);
  const found = record.state.requests.map(async (open) => {
    const events = await engine.read(record.principal, record.id, open.eventId, 1).catch(noneIfRefused);
    const request = requestOf(events.at(0));
    if (!request) return [];
    const agent = request.agentId === undefined ? undefined : await agents.of(record, request.agentId, open.eventId);
    return [{ ...described({ record, title, open, request }), ...(agent && { agent }) }];
  });
  return (await Promise.all(found)).flat();
}

interface FullRequest {
  readonly record: SessionRecord;
  readonly title: string;
  readonly open: OpenRequest;
  readonly request: PermissionRequest;
}

function described({ request, open, record, title }: FullRequest): PendingRequest {
  const { agentId, blockedPath, decisionReason, input, kind, risk, toolName } = request;
  const type = kind === "question" ? kind : toolName === "ExitPlanMode" ? "plan" : "permission";
  const unchecked = uncheckedFor(request, record);
  return {
    sessionId: record.id,
    title,
    cwd: record.spec.cwd,
    requestId: request.requestId,
    eventId: open.eventId,
    type,
    toolName,
    input,
    ...(risk && { risk }),
    ...(decisionReason !== undefined && { decisionReason }),
    ...(blockedPath !== undefined && { blockedPath }),
    ...(unchecked !== undefined && { unchecked }),
    ...(agentId !== undefined && { agentId }),
    remember: type === "permission" ? rulesToRemember(request) : [],
    approvals: record.policy?.approvalChain ?? [],
    approver: open.approver,
    approverDeadline: open.approverDeadline,
    createdAt: open.createdAt,
    expiresAt: open.expiresAt,
  };
}

/** `LOOKED_AT`: sessions read for decisions, last changed first. `SHOWN`: decisions returned. */
const [LOOKED_AT, SHOWN] = [30, 50];
const ANSWERS: readonly EventType[] = ["permission.answered", "question.answered"];
/** Events per read of `decidedIn`, backwards from the end of the log. */
const PAGE = 2_000;

/** Latest decisions in the sessions of `principal`, newest first. */
export async function decidedOf(sources: Sources, principal: Principal): Promise<Decided[]> {
  const records = await sources.engine.list({ principal, limit: LOOKED_AT });
  const answered = records.filter(({ state }) => state.answered.length > 0);
  const found = await Promise.all(answered.map(async (record) => decidedIn(sources, record)));
  return found
    .flat()
    .toSorted((a, b) => b.at - a.at)
    .slice(0, SHOWN);
}

/** Reads the log backwards until all decisions listed in `state.answered` are found. */
async function decidedIn({ store, titles }: Sources, record: SessionRecord): Promise<Decided[]> {
  const title = await titles.of(record);
  const wanted = record.state.answered.length;
  let found: Decided[] = [];
  for (let end = record.state.lastEventId; end > 0 && found.length < wanted; end -= PAGE) {
    const from = Math.max(1, end - PAGE + 1);
    const page = await store.log.read(record.id, from, PAGE, ANSWERS);
    found = [...page.filter(({ id }) => id <= end).flatMap((event) => decidedBy(event, record.id, title)), ...found];
  }
  return found;
}

function decidedBy({ at, data, id, type }: StoredEvent, sessionId: string, title: string): Decided[] {
  if (type !== "permission.answered" && type !== "question.answered") return [];
  const { forSession: _, ...decided } = data;
  return [{ sessionId, title, eventId: id, ...decided, at }];
}
