import { isWithin } from "../../../domain/approvals/risk.ts";
import {
  CALLER,
  CONSOLE,
  isService,
  USER,
  type PassReason,
  type ApproverName,
} from "../../../domain/approvals/answer-source.ts";
import type { CommandOf } from "../../../domain/command.ts";
import type { Refusal } from "../../../domain/error.ts";
import { type OpenRequest } from "../../../domain/permission.ts";
import { emit, type Draft } from "../draft.ts";
import { shownTime } from "../time.ts";

/**
 * The approval chain: approvers in order. A request is with one approver at a time, and passes to the next once the time limit
 * is over, or if the approver is unreachable or gives no answer. After the last approver the request is denied.
 */

type KindAndRisk = Pick<OpenRequest, "kind" | "risk">;

/**
 * Returns the first approver behind `after` that can take the request. Passes over unreachable approvers if a reachable approver
 * follows; otherwise the request waits with the first.
 */
export function nextApprover(draft: Draft, request: KindAndRisk, after?: ApproverName): ApproverName | undefined {
  const able = laterAbleApprovers(draft, request, after);
  const isAnyThere = able.some((approver) => isReachable(draft, approver));
  return isAnyThere ? able.find((approver) => approver === CONSOLE || isReachable(draft, approver)) : able[0];
}

function laterAbleApprovers({ policy, ...draft }: Draft, request: KindAndRisk, after?: ApproverName): ApproverName[] {
  const { approvalChain } = policy;
  const behind = after === undefined ? approvalChain : approvalChain.slice(approvalChain.indexOf(after) + 1);
  return behind.filter((approver) => canTake({ policy, ...draft }, request, approver));
}

/**
 * True if the approver is reachable, as far as known. Services report themselves as unreachable. A console may be open at
 * another server: false, because an answer is not to be expected, but `nextApprover` never passes a console over.
 */
function isReachable({ policy, state: { reach } }: Draft, approver: ApproverName): boolean {
  if (!policy.unattended || !reach) return true;
  if (approver === CALLER || approver === USER) return reach[approver];
  return approver !== CONSOLE;
}

/** True if the request, so far shown to no approver, can be shown to its approver or a later one now. */
export function canBeShown(draft: Draft, request: OpenRequest): boolean {
  const own = request.approver;
  return (
    isReachable(draft, own) || laterAbleApprovers(draft, request, own).some((approver) => isReachable(draft, approver))
  );
}

/** True if no approver has seen the request. */
export function isUnseen({ deliveredAt, seenBefore }: OpenRequest): boolean {
  return deliveredAt === undefined && !seenBefore;
}

/** Follows a change of connected clients: passes the request to a reachable approver, or lets its time run or stand still. */
export function followReach(draft: Draft, request: OpenRequest): void {
  const own = request.approver;
  if (own !== CONSOLE && !isReachable(draft, own) && canBeShown(draft, request)) {
    escalate(draft, request, "unreachable");
  } else if (waitsToBeShown(draft, request) && isWithoutLimit(request) === hasReachableSuccessor(draft, request)) {
    setTimes(draft, request);
  }
}

/** True if the request's time runs only from its first showing, unless the caller chose a time limit. */
export function waitsToBeShown(draft: Draft, request: OpenRequest): boolean {
  return draft.policy.unattended?.requests === "wait" && isUnseen(request) && chosenMs(draft) === undefined;
}

/** True if the request passes to a reachable approver once its time is over. */
function hasReachableSuccessor(draft: Draft, request: OpenRequest): boolean {
  const own = request.approver;
  return laterAbleApprovers(draft, request, own).some((approver) => isReachable(draft, approver));
}

function isWithoutLimit(request: OpenRequest): boolean {
  const { approverLeftMs, leftMs } = request.clock;
  return approverLeftMs >= leftMs;
}

/** Time limit of a request that waits to be shown, ms: as long as sessions are kept by default. */
const WAIT_MS = 30 * 86_400_000;

function canTake(draft: Draft, request: KindAndRisk, approver: ApproverName): boolean {
  if (approver === USER)
    return draft.state.noDialog !== true && (!draft.state.unattended || mayFormAnswer(draft, request));
  if (approver === CONSOLE) return approverTimeMs(draft, approver) > 0;
  return (
    approver !== CALLER || (draft.state.noCaller !== true && mayCallerApprove(draft, request, draft.state.decides))
  );
}

/** Minimum time at the console for a session last prompted there, even with `console:0`, ms. */
const AT_CONSOLE_MS = 600_000;

/** Returns the time limit of the approver, ms; 0 if the approver is not asked. */
function approverTimeMs({ policy, state }: Draft, approver: ApproverName): number {
  const ms = policy.approverTimeoutMs[approver] ?? 0;
  return approver === CONSOLE && ms === 0 && state.atConsole ? consoleMs(policy) : ms;
}

function consoleMs({ requestDeliveredMs }: Draft["policy"]): number {
  return Math.max(AT_CONSOLE_MS, requestDeliveredMs);
}

/**
 * True if the caller's bound covers the risk. A question counts as `reads`: an answer approves nothing, but a caller who may
 * approve nothing is not asked.
 */
function mayCallerApprove({ policy }: Draft, { kind, risk = "all" }: KindAndRisk, decides = false): boolean {
  const bound = decides ? policy.sessionApproves : policy.callerApproves;
  return isWithin(kind === "question" ? "reads" : risk, bound);
}

/** At an unattended client a submitted form counts as the caller's answer. */
function mayFormAnswer(draft: Draft, request: KindAndRisk): boolean {
  const { policy, state } = draft;
  return policy.approvalChain.includes(CALLER) && mayCallerApprove(draft, request, state.decides);
}

/** Gives the request to the approver, whose time begins. */
export function assignTo(draft: Draft, request: OpenRequest, approver: ApproverName): void {
  request.approver = approver;
  request.approverSince = draft.at;
  request.clock.approverMs = 0;
  if (request.deliveredAt !== undefined) request.seenBefore = true;
  delete request.deliveredAt;
  delete request.extended;
  delete request.filled;
  setTimes(draft, request);
}

/**
 * Derives the time left for the approver, and for all approvers, from the state, the policy and the caller's choice. Called
 * once the approver gets the request, and again once the approver has seen it: time runs from these two moments.
 */
export function setTimes(draft: Draft, request: OpenRequest): void {
  const { policy } = draft;
  const approver = request.approver;
  const { clock } = request;
  const before = request.extended ? { ...clock } : undefined;
  const isNew = isUnseen(request);
  clock.approverLeftMs = approver === CALLER ? callerTimeMs(draft, request) : approverTimeMs(draft, approver);
  const all = clock.approverLeftMs + laterTimeMs(draft, request, approver);
  const unseen = policy.requestUnseenMs - clock.ageMs;
  clock.leftMs = isNew && chosenMs(draft) === undefined ? Math.min(all, unseen) : all;
  if (waitsToBeShown(draft, request)) {
    clock.leftMs = WAIT_MS;
    if (!hasReachableSuccessor(draft, request)) clock.approverLeftMs = WAIT_MS;
  }
  if (before) clock.approverLeftMs = Math.max(clock.approverLeftMs, before.approverLeftMs);
  if (before) clock.leftMs = Math.max(clock.leftMs, before.leftMs);
  showTimes(draft, request);
}

function showTimes({ at }: Draft, request: OpenRequest): void {
  const { clock } = request;
  request.approverDeadline = shownTime(request.approverDeadline, at + clock.approverLeftMs);
  request.expiresAt = shownTime(request.expiresAt, at + clock.leftMs);
}

/** Maximum time left to answer after `extend`, ms. */
const MAX_LEFT_MS = 86_400_000;

/** Refusal if only the reason of a denial is still open (`REASON_MS`). */
const ALREADY_DENIED =
  "The user has already denied this request, and only the reason is still open. It cannot be allowed any more.";

/** Adds the console's time limit to the time left. Returns a refusal without a console, or after a denial. */
export function extend(draft: Draft, request: OpenRequest): Refusal | undefined {
  const { approvalChain } = draft.policy;
  if (request.denial !== undefined) return permissionDenied(ALREADY_DENIED);
  if (!approvalChain.includes(CONSOLE))
    return permissionDenied(
      `Approvers on this server: ${chainText(approvalChain)} (--approvals). console is not one of them.`,
    );
  const { clock } = request;
  const ms = Math.max(0, Math.min(consoleMs(draft.policy), MAX_LEFT_MS - clock.leftMs));
  clock.approverLeftMs += ms;
  clock.leftMs += ms;
  request.extended = true;
  showTimes(draft, request);
  return undefined;
}

/** Limits the time left for the approver to `ms`. */
export function endWithin(draft: Draft, request: OpenRequest, ms: number): void {
  const { clock } = request;
  clock.approverLeftMs = Math.min(clock.approverLeftMs, ms);
  clock.leftMs = Math.min(clock.leftMs, clock.approverLeftMs);
  showTimes(draft, request);
}

function callerTimeMs(draft: Draft, request: OpenRequest): number {
  const { policy } = draft;
  const { approverMs } = request.clock;
  const chosen = chosenMs(draft);
  if (chosen !== undefined) return chosen - approverMs;
  if (request.deliveredAt === undefined) return policy.requestUnseenMs - approverMs;
  return Math.min(policy.requestDeliveredMs, policy.requestMaxMs - approverMs);
}

/** Returns the total time of later approvers as far as known, ms. */
function laterTimeMs(draft: Draft, request: KindAndRisk, approver: ApproverName): number {
  const { policy } = draft;
  const next = nextApprover(draft, request, approver);
  if (next === undefined) return 0;
  const own = next === CALLER ? (chosenMs(draft) ?? policy.requestDeliveredMs) : approverTimeMs(draft, next);
  return own + laterTimeMs(draft, request, next);
}

/** Returns the caller's time limit for the prompt, otherwise for the session, ms. */
function chosenMs({ policy, state }: Draft): number | undefined {
  return state.turn?.prompt?.limits?.requestTimeoutMs ?? policy.requestTimeoutMs;
}

/** Passes the request to the next approver. False without a next approver. */
export function escalate(draft: Draft, request: OpenRequest, why: PassReason): boolean {
  const from = request.approver;
  const to = nextApprover(draft, request, from);
  if (to === undefined) return false;
  emit(draft, { type: "request.passed", data: { requestId: request.requestId, from, to, why } });
  assignTo(draft, request, to);
  return true;
}

type AnswerData = Pick<CommandOf<"answer">["data"], "asCaller" | "by" | "decides" | "decision">;

/**
 * Returns the refusal of an answer that does not count, or `undefined`. People on the approval chain may answer at any time,
 * and every approver may deny. A caller may allow within its bound, after the approvers before it had the request.
 */
export function answerObjection(
  draft: Draft,
  request: OpenRequest,
  { asCaller, by, decides, decision }: AnswerData,
): Refusal | undefined {
  const { approvalChain } = draft.policy;
  if (request.denial !== undefined && decision.behavior === "allow") return permissionDenied(ALREADY_DENIED);
  if (!approvalChain.includes(by))
    return permissionDenied(
      `Approvers on this server: ${chainText(approvalChain)} (--approvals). ${by} is not one of them.`,
    );
  if ((by !== CALLER && !asCaller) || decision.behavior === "deny") return undefined;
  // If only people are to answer, no program takes their place. A service may be a program by nature.
  if (!isService(by) && !approvalChain.includes(CALLER))
    return permissionDenied(
      `Approvers on this server: ${chainText(approvalChain)} (--approvals). A program is not one of them.`,
    );
  if (!mayCallerApprove(draft, request, decides)) return permissionDenied(beyondBoundMessage(draft, request));
  const active = request.approver;
  if (active === by || isWithCallerOrLater(approvalChain, active)) return undefined;
  const until = new Date(request.approverDeadline).toISOString();
  return permissionDenied(
    `The request is with the ${active} until ${until}. Wait with claude_code_check; you may deny it now.`,
  );
}

/** True if the request is with the caller or a later approver. */
function isWithCallerOrLater(approvalChain: readonly ApproverName[], active: ApproverName): boolean {
  return approvalChain.includes(CALLER) && approvalChain.indexOf(active) >= approvalChain.indexOf(CALLER);
}

/** Explains the denial of a request without a further approver. */
export function noApproverMessage(draft: Draft, request: OpenRequest): string {
  const { approvalChain } = draft.policy;
  const advice = "Do it in a way that is allowed, or say what you could not do.";
  if (approvalChain.includes(CALLER) && !mayCallerApprove(draft, request, draft.state.decides))
    return `${beyondBoundMessage(draft, request)} ${advice}`;
  return `No approver can answer a request here. ${advice}`;
}

function beyondBoundMessage(
  { policy }: Draft,
  { kind, risk = "all", toolName }: Pick<OpenRequest, "kind" | "risk" | "toolName">,
) {
  const what = kind === "question" ? "A question" : `${toolName} (${risk})`;
  return `${what} is more than a caller may decide here (${policy.callerApproves}, --caller-approves).`;
}

function permissionDenied(message: string): Refusal {
  return { code: "PERMISSION_DENIED", message };
}

function chainText(approvalChain: readonly ApproverName[]): string {
  return approvalChain.length === 0 ? "nobody" : approvalChain.join(", ");
}
