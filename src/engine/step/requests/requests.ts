import type { CommandOf, Delivered } from "../../../domain/command.ts";
import { CALLER, USER, type PassReason } from "../../../domain/approvals/answer-source.ts";
import type { JsonObject } from "../../../domain/json.ts";
import {
  type AnsweredBy,
  type PermissionRequest,
  type PermissionUpdate,
  type OpenRequest,
} from "../../../domain/permission.ts";
import { emit, noteUnattended, type Draft } from "../draft.ts";
import type { Reach } from "../../../domain/attendance.ts";
import {
  assignTo,
  canBeShown,
  endWithin,
  escalate,
  followReach,
  isUnseen,
  nextApprover,
  noApproverMessage,
  setTimes,
  waitsToBeShown,
} from "./approval-chain.ts";
import { findRuling, type Ruling } from "./ruling.ts";

const ANSWERED_KEPT = 20;

export interface Answer {
  behavior: "allow" | "deny";
  by: AnsweredBy;
  message?: string;
  forSession?: boolean;
  rule?: string;
  remembered?: string[];
  updatedInput?: JsonObject;
  updatedPermissions?: PermissionUpdate[];
}

/**
 * Origin of an answer. `isMasked`: the answer contains secrets masked in the log, so a later retry cannot be answered from the
 * log.
 */
interface AnswerOrigin {
  readonly commandId?: string;
  readonly isMasked?: boolean;
}

/** Logs the request, then settles it by a rule or gives it to the first approver. */
export function openRequest(draft: Draft, request: PermissionRequest): void {
  const { state, at } = draft;
  const eventId = emit(draft, {
    type: request.kind === "question" ? "question.asked" : "permission.asked",
    data: request,
  });
  const open: OpenRequest = {
    requestId: request.requestId,
    kind: request.kind,
    eventId,
    toolName: request.toolName,
    createdAt: at,
    clock: { ageMs: 0, leftMs: 0, approverMs: 0, approverLeftMs: 0 },
    expiresAt: at,
    approver: CALLER,
    approverSince: at,
    approverDeadline: at,
    ...(request.risk && { risk: request.risk.level }),
    seenWhole: false,
  };
  state.requests.push(open);
  state.answered = state.answered.filter(({ requestId }) => requestId !== request.requestId);
  if (request.refused !== undefined) return denyRequest(draft, open, "rule", request.refused);
  const ruling = findRuling(draft, request);
  if (ruling) return settleByRule(draft, open, ruling);
  const approver = nextApprover(draft, open);
  if (approver === undefined) return denyRequest(draft, open, "rule", noApproverMessage(draft, open));
  assignTo(draft, open, approver);
  if (canBeShown(draft, open)) return;
  if (denyUnshown(draft, open)) return;
  noteUnattended(draft, `No client is connected that can be shown this request (${open.toolName}). ${WAITS}`);
}

const WAITS = "It waits for the next one, and its time runs from then on (--unattended wait).";

/** Denies a request that no client can be shown, if the operator chose `--unattended deny`. Returns true if denied. */
function denyUnshown(draft: Draft, request: OpenRequest): boolean {
  if (draft.policy.unattended?.requests !== "deny") return false;
  noteUnattended(
    draft,
    `No client was connected that could be shown a request (${request.toolName}): denied (--unattended deny).`,
  );
  denyRequest(draft, request, "rule", UNSHOWN);
  return true;
}

const UNSHOWN =
  "No approver can be shown this request, and the operator of this server denies such requests. Continue without it, or say at the end what you could not do.";

/**
 * Records `reach`, the approvers reachable through connected clients, and adapts requests not shown yet: denies, passes on, or
 * changes times.
 */
export function onReach(draft: Draft, reach: Reach): void {
  draft.state.reach = reach;
  for (const request of draft.state.requests.filter(isUnseen)) {
    if (canBeShown(draft, request) || !denyUnshown(draft, request)) followReach(draft, request);
  }
}

function settleByRule(draft: Draft, request: OpenRequest, { decision, rule }: Ruling): void {
  settleRequest(draft, request, { ...decision, by: "rule", rule });
  draft.effects.push({ type: "answer", requestId: request.requestId, decision });
}

/** Denies the request, with `message` as the reason. */
export function denyRequest(draft: Draft, request: OpenRequest, by: AnsweredBy, message: string): void {
  settleRequest(draft, request, { behavior: "deny", by, message });
  draft.effects.push({ type: "answer", requestId: request.requestId, decision: { behavior: "deny", message } });
}

/** Passes the request on, because its approver gives up. Ignores `unreachable` for a request already shown to the approver. */
export function giveUp(draft: Draft, { from, requestId, why }: CommandOf<"pass">["data"]): void {
  const request = draft.state.requests.find((open) => open.requestId === requestId);
  if (!request || request.approver !== from || (why === "unreachable" && request.deliveredAt !== undefined)) return;
  if (why !== "unattended") return passOrDeny(draft, request, why);
  // The client shows no forms, so none is sent until the next prompt.
  draft.state.noDialog = true;
  for (const open of draft.state.requests.filter((each) => each.approver === from)) passOrDeny(draft, open, why);
}

function passOrDeny(draft: Draft, request: OpenRequest, why: PassReason): void {
  if (request.denial !== undefined) denyRequest(draft, request, USER, request.denial);
  else if (!escalate(draft, request, why)) denyRequest(draft, request, "rule", noApproverMessage(draft, request));
}

/** Time to wait for the reason of a person who has denied a request, ms. */
const REASON_MS = 120_000;

/**
 * Keeps the content of the first of two forms (`filled`). With `denial`, the request is denied for good, passes to no other
 * approver and waits only for the reason (`REASON_MS`).
 */
export function fillRequest(draft: Draft, { denial, filled, from, requestId }: CommandOf<"fill">["data"]): void {
  const request = draft.state.requests.find((open) => open.requestId === requestId);
  if (!request || request.approver !== from || request.denial !== undefined) return;
  request.filled = filled;
  if (denial === undefined) return;
  request.denial = denial;
  endWithin(draft, request, REASON_MS);
}

/**
 * Ends a request: logs the answer and removes the request from `requests`. No other code does, so that log and state agree on
 * open requests.
 */
export function settleRequest(
  draft: Draft,
  request: OpenRequest,
  answer: Answer,
  { commandId, isMasked = false }: AnswerOrigin = {},
): void {
  const { state } = draft;
  const { requestId, toolName } = request;
  const eventId = emit(draft, {
    type: request.kind === "question" ? "question.answered" : "permission.answered",
    data: { requestId, toolName, ...answer },
  });
  state.requests = state.requests.filter((open) => open.requestId !== requestId);
  const kept = { requestId, by: answer.by, behavior: answer.behavior, ...(commandId !== undefined && { commandId }) };
  state.answered = [...state.answered, { ...kept, ...(!isMasked && { eventId }) }].slice(-ANSWERED_KEPT);
  if (state.turn && state.requests.length === 0) state.turn.clock.silentMs = 0;
}

export function settleAllRequests(draft: Draft, by: AnsweredBy): void {
  for (const request of draft.state.requests) settleRequest(draft, request, { behavior: "deny", by });
}

/**
 * Marks the request as shown to `approver`, wholly or by a page. The first showing starts the approver's time anew, up to a
 * cap, unless the caller chose a time limit.
 */
export function markDelivered(draft: Draft, { requestId, whole, page, approver = CALLER }: Delivered): void {
  const { at, state } = draft;
  const request = state.requests.find((open) => open.requestId === requestId);
  if (!request) return;
  if (page && page.from <= (request.seenTo ?? 0)) request.seenTo = Math.max(request.seenTo ?? 0, page.to);
  request.seenWhole ||= whole || (page !== undefined && (request.seenTo ?? 0) >= page.of);
  if (request.deliveredAt !== undefined || request.approver !== approver) return;
  // Time before the showing does not count towards the operator's cap (`requestMaxMs`).
  if (waitsToBeShown(draft, request)) request.clock.approverMs = 0;
  request.deliveredAt = at;
  setTimes(draft, request);
}
