import { rulesToRemember } from "../domain/approvals/remembered.ts";
import { requestOf, type EventType, type StoredEvent } from "../domain/event.ts";
import { type PermissionRequest, type OpenRequest } from "../domain/permission.ts";
import type { Principal } from "../domain/principal.ts";
import { uncheckedFor } from "../engine/policy/unchecked.ts";
import type { SessionRecord } from "../engine/ports.ts";
import type { Sources } from "./sources.ts";
import { noneIfRefused } from "./titles.ts";
import type { Decision, PendingRequest } from "./wire.ts";

/** Open requests and recent decisions, as shown on the page. */

/** Maximum number of sessions that `readPending` reads. */
const MAX_SESSIONS = 200;

/** Open requests in the sessions of `principal`, oldest first. */
export async function readPending(sources: Sources, principal: Principal): Promise<PendingRequest[]> {
  const waiting = await sources.engine.list({ principal, statuses: ["waiting_permission"], limit: MAX_SESSIONS });
  const requests = await Promise.all(waiting.map(async (record) => readPendingOfSession(sources, record)));
  return requests.flat().toSorted((a, b) => a.createdAt - b.createdAt);
}

async function readPendingOfSession(
  { agents, engine, titles }: Sources,
  record: SessionRecord,
): Promise<PendingRequest[]> {
  const title = await titles.findTitle(record);
  const found = record.state.requests.map(async (open) => {
    const events = await engine.read(record.principal, record.id, open.eventId, 1).catch(noneIfRefused);
    const request = requestOf(events.at(0));
    if (!request) return [];
    const agent =
      request.agentId === undefined ? undefined : await agents.findTask(record, request.agentId, open.eventId);
    return [{ ...toPendingRequest({ record, title, open, request }), ...(agent && { agent }) }];
  });
  return (await Promise.all(found)).flat();
}

/** Finds an open request of `principal`. Resolves to its decision if the request is closed, `undefined` if there is none. */
export async function findRequest(
  sources: Sources,
  principal: Principal,
  { requestId, sessionId }: Pick<PendingRequest, "requestId" | "sessionId">,
): Promise<PendingRequest | Pick<Decision, "behavior" | "by"> | undefined> {
  const record = await sources.engine.get(principal, sessionId);
  const open = await readPendingOfSession(sources, record);
  const isWanted = (each: { readonly requestId: string }) => each.requestId === requestId;
  return open.find(isWanted) ?? record.state.answered.find(isWanted);
}

interface FullRequest {
  readonly record: SessionRecord;
  readonly title: string;
  readonly open: OpenRequest;
  readonly request: PermissionRequest;
}

function toPendingRequest({ request, open, record, title }: FullRequest): PendingRequest {
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

/** `SESSIONS_READ`: sessions read for decisions, last changed first. `MAX_DECISIONS`: decisions returned. */
const [SESSIONS_READ, MAX_DECISIONS] = [30, 50];
const ANSWER_EVENTS: readonly EventType[] = ["permission.answered", "question.answered"];
/** Events per read of `readDecisionsOfSession`, backwards from the end of the log. */
const PAGE = 2_000;

/** Latest decisions in the sessions of `principal`, newest first. */
export async function readDecisions(sources: Sources, principal: Principal): Promise<Decision[]> {
  const records = await sources.engine.list({ principal, limit: SESSIONS_READ });
  const answered = records.filter(({ state }) => state.answered.length > 0);
  const found = await Promise.all(answered.map(async (record) => readDecisionsOfSession(sources, record)));
  return found
    .flat()
    .toSorted((a, b) => b.at - a.at)
    .slice(0, MAX_DECISIONS);
}

/** Reads the log backwards until all decisions listed in `state.answered` are found. */
async function readDecisionsOfSession({ store, titles }: Sources, record: SessionRecord): Promise<Decision[]> {
  const title = await titles.findTitle(record);
  const wanted = record.state.answered.length;
  let found: Decision[] = [];
  for (let end = record.state.lastEventId; end > 0 && found.length < wanted; end -= PAGE) {
    const from = Math.max(1, end - PAGE + 1);
    const page = await store.log.read(record.id, from, PAGE, ANSWER_EVENTS);
    found = [...page.filter(({ id }) => id <= end).flatMap((event) => decisionOf(event, record.id, title)), ...found];
  }
  return found;
}

function decisionOf({ at, data, id, type }: StoredEvent, sessionId: string, title: string): Decision[] {
  if (type !== "permission.answered" && type !== "question.answered") return [];
  const { forSession: _, ...decided } = data;
  return [{ sessionId, title, eventId: id, ...decided, at }];
}
