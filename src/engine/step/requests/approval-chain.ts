import { isWithin } from "../../../domain/approvals/risk.ts";
import {
  CALLER,
  CONSOLE,
  isService,
  USER,
  type Passed,
  type ApproverName,
} from "../../../domain/approvals/answer-source.ts";
import type { CommandOf } from "../../../domain/command.ts";
import type { Refusal } from "../../../domain/error.ts";
import { type OpenRequest } from "../../../domain/permission.ts";
import { emit, type Draft } from "../draft.ts";
import { shownTime } from "../time.ts";

/**
 * The approval chain: the approvers in their order. A request is with one approver at a time, and goes to the next when the time
 * limit is over, or when the approver cannot be reached or gives no answer. After the last one it is denied.
 */

type KindAndRisk = Pick<OpenRequest, "kind" | "risk">;

/**
 * The first approver that can take the request, of those behind `after`. Those that cannot be reached are passed over for one that
 * can; where none can, the request waits with the first.
 */
export function nextApprover(draft: Draft, request: KindAndRisk, after?: ApproverName): ApproverName | undefined {
  const able = ableBehind(draft, request, after);
  const isAnyThere = able.some((approver) => isThere(draft, approver));
  return isAnyThere ? able.find((approver) => approver === CONSOLE || isThere(draft, approver)) : able[0];
}

function ableBehind({ policy, ...draft }: Draft, request: KindAndRisk, after?: ApproverName): ApproverName[] {
  const { approvalChain } = policy;
  const behind = after === undefined ? approvalChain : approvalChain.slice(approvalChain.indexOf(after) + 1);
  return behind.filter((approver) => canTake({ policy, ...draft }, request, approver));
}

/**
 * Whether the approver can be reached as far as is known. Services report themselves when they cannot; a console may be open at
 * another server: it is never passed over, and no reason to expect an answer.
 */
function isThere({ policy, state: { reach } }: Draft, approver: ApproverName): boolean {
  if (!policy.unattended || !reach) return true;
  if (approver === CALLER || approver === USER) return reach[approver];
  return approver !== CONSOLE;
}

/** Whether the request, which has been shown to no one, can be shown to someone now. */
export function canBeShown(draft: Draft, request: OpenRequest): boolean {
  const own = request.approver;
  return isThere(draft, own) || ableBehind(draft, request, own).some((approver) => isThere(draft, approver));
}

/** Whether no approver has seen it. */
export function isUnseen({ deliveredAt, seenBefore }: OpenRequest): boolean {
  return deliveredAt === undefined && !seenBefore;
}

/** Clients came or went: the request goes on to an approver that can be reached, and its time runs or stands still. */
export function followReach(draft: Draft, request: OpenRequest): void {
  const own = request.approver;
  if (own !== CONSOLE && !isThere(draft, own) && canBeShown(draft, request)) {
    escalate(draft, request, "unreachable");
  } else if (waitsToBeShown(draft, request) && isWithoutLimit(request) === hasTimeToPass(draft, request)) {
    setTimes(draft, request);
  }
}

/** Its time runs from its first showing, as far as its caller has not chosen another. */
export function waitsToBeShown(draft: Draft, request: OpenRequest): boolean {
  return draft.policy.unattended?.requests === "wait" && isUnseen(request) && chosenMs(draft) === undefined;
}

/** Without an answer it goes on to an approver that can be reached. */
function hasTimeToPass(draft: Draft, request: OpenRequest): boolean {
  const own = request.approver;
  return ableBehind(draft, request, own).some((approver) => isThere(draft, approver));
}

function isWithoutLimit(request: OpenRequest): boolean {
  const { approverLeftMs, leftMs } = request.clock;
  return approverLeftMs >= leftMs;
}

/** Of a request that waits to be shown, ms: as long as sessions are kept by default. */
const WAIT_MS = 30 * 86_400_000;

function canTake(draft: Draft, request: KindAndRisk, approver: ApproverName): boolean {
  if (approver === USER)
    return draft.state.noDialog !== true && (!draft.state.unattended || mayFormAnswer(draft, request));
  if (approver === CONSOLE) return timeOf(draft, approver) > 0;
  return (
    approver !== CALLER || (draft.state.noCaller !== true && mayCallerApprove(draft, request, draft.state.decides))
  );
}

/** With `console:0`, a session that was last prompted at the console still asks there: as long as callers have, at least this. ms */
const AT_CONSOLE_MS = 600_000;

/** How long the approver has, ms; 0 where it is not asked. */
function timeOf({ policy, state }: Draft, approver: ApproverName): number {
  const ms = policy.approverTimeoutMs[approver] ?? 0;
  return approver === CONSOLE && ms === 0 && state.atConsole ? consoleMs(policy) : ms;
}

function consoleMs({ requestDeliveredMs }: Draft["policy"]): number {
  return Math.max(AT_CONSOLE_MS, requestDeliveredMs);
}

/** To answer a question approves nothing; but a caller who may approve nothing is not the one to be asked. */
function mayCallerApprove({ policy }: Draft, { kind, risk = "all" }: KindAndRisk, decides = false): boolean {
  const bound = decides ? policy.sessionApproves : policy.callerApproves;
  return isWithin(kind === "question" ? "reads" : risk, bound);
}

/** At an unattended client a submitted form counts as the caller's answer. */
function mayFormAnswer(draft: Draft, request: KindAndRisk): boolean {
  const { policy, state } = draft;
  return policy.approvalChain.includes(CALLER) && mayCallerApprove(draft, request, state.decides);
}

/** Gives the request to the approver; its time begins. */
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
 * What the approver has left to answer in, and all of them: read off the state, the policy and what the caller chose. Set when
 * the approver gets the request, and once more when it has seen it: those are the two moments from which its time runs.
 */
export function setTimes(draft: Draft, request: OpenRequest): void {
  const { policy } = draft;
  const approver = request.approver;
  const { clock } = request;
  const before = request.extended ? { ...clock } : undefined;
  const isNew = isUnseen(request);
  clock.approverLeftMs = approver === CALLER ? callersTime(draft, request) : timeOf(draft, approver);
  const all = clock.approverLeftMs + timeBehind(draft, request, approver);
  const unseen = policy.requestUnseenMs - clock.ageMs;
  clock.leftMs = isNew && chosenMs(draft) === undefined ? Math.min(all, unseen) : all;
  if (waitsToBeShown(draft, request)) {
    clock.leftMs = WAIT_MS;
    if (!hasTimeToPass(draft, request)) clock.approverLeftMs = WAIT_MS;
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

/** Maximum time left to answer, ms. */
const MAX_LEFT_MS = 86_400_000;

/** Only the reason is missing, for which there is a time of its own. */
const ALREADY_DENIED =
  "The user has already denied this request, and only the reason is still open. It cannot be allowed any more.";

/** As much again as the console has, for those who decide; why not, where they do not decide here, or nothing is left to. */
export function extend(draft: Draft, request: OpenRequest): Refusal | undefined {
  const { approvalChain } = draft.policy;
  if (request.denial !== undefined) return denied(ALREADY_DENIED);
  if (!approvalChain.includes(CONSOLE))
    return denied(`Approvers on this server: ${wordsOf(approvalChain)} (--approvals). console is not one of them.`);
  const { clock } = request;
  const ms = Math.max(0, Math.min(consoleMs(draft.policy), MAX_LEFT_MS - clock.leftMs));
  clock.approverLeftMs += ms;
  clock.leftMs += ms;
  request.extended = true;
  showTimes(draft, request);
  return undefined;
}

/** The approver has no longer than this from here on. */
export function endWithin(draft: Draft, request: OpenRequest, ms: number): void {
  const { clock } = request;
  clock.approverLeftMs = Math.min(clock.approverLeftMs, ms);
  clock.leftMs = Math.min(clock.leftMs, clock.approverLeftMs);
  showTimes(draft, request);
}

function callersTime(draft: Draft, request: OpenRequest): number {
  const { policy } = draft;
  const { approverMs } = request.clock;
  const chosen = chosenMs(draft);
  if (chosen !== undefined) return chosen - approverMs;
  if (request.deliveredAt === undefined) return policy.requestUnseenMs - approverMs;
  return Math.min(policy.requestDeliveredMs, policy.requestMaxMs - approverMs);
}

/** What the approvers behind it may take, as far as that is known. */
function timeBehind(draft: Draft, request: KindAndRisk, approver: ApproverName): number {
  const { policy } = draft;
  const next = nextApprover(draft, request, approver);
  if (next === undefined) return 0;
  const own = next === CALLER ? (chosenMs(draft) ?? policy.requestDeliveredMs) : timeOf(draft, next);
  return own + timeBehind(draft, request, next);
}

/** What the caller chose for the prompt, or else for the session. */
function chosenMs({ policy, state }: Draft): number | undefined {
  return state.turn?.prompt?.limits?.requestTimeoutMs ?? policy.requestTimeoutMs;
}

/** To the next approver; false where there is none. */
export function escalate(draft: Draft, request: OpenRequest, why: Passed): boolean {
  const from = request.approver;
  const to = nextApprover(draft, request, from);
  if (to === undefined) return false;
  emit(draft, { type: "request.passed", data: { requestId: request.requestId, from, to, why } });
  assignTo(draft, request, to);
  return true;
}

type Answering = Pick<CommandOf<"answer">["data"], "asCaller" | "by" | "decides" | "decision">;

/**
 * Why this answer does not count. People on the approval chain may answer at any time, and every approver on it may deny. A caller
 * may allow within its bound, after the approvers before it had the request.
 */
export function whyNotBy(
  draft: Draft,
  request: OpenRequest,
  { asCaller, by, decides, decision }: Answering,
): Refusal | undefined {
  const { approvalChain } = draft.policy;
  if (request.denial !== undefined && decision.behavior === "allow") return denied(ALREADY_DENIED);
  if (!approvalChain.includes(by))
    return denied(`Approvers on this server: ${wordsOf(approvalChain)} (--approvals). ${by} is not one of them.`);
  if ((by !== CALLER && !asCaller) || decision.behavior === "deny") return undefined;
  // Where only people are to answer, no program takes their place; what a service tells may be one by nature.
  if (!isService(by) && !approvalChain.includes(CALLER))
    return denied(`Approvers on this server: ${wordsOf(approvalChain)} (--approvals). A program is not one of them.`);
  if (!mayCallerApprove(draft, request, decides)) return denied(tooMuch(draft, request));
  const active = request.approver;
  if (active === by || isBehind(approvalChain, active)) return undefined;
  const until = new Date(request.approverDeadline).toISOString();
  return denied(`The request is with the ${active} until ${until}. Wait with claude_code_check; you may deny it now.`);
}

/** Whether those before the caller had it. */
function isBehind(approvalChain: readonly ApproverName[], active: ApproverName): boolean {
  return approvalChain.includes(CALLER) && approvalChain.indexOf(active) >= approvalChain.indexOf(CALLER);
}

/** Why no approver is left. */
export function nobodyFor(draft: Draft, request: OpenRequest): string {
  const { approvalChain } = draft.policy;
  const advice = "Do it in a way that is allowed, or say what you could not do.";
  if (approvalChain.includes(CALLER) && !mayCallerApprove(draft, request, draft.state.decides))
    return `${tooMuch(draft, request)} ${advice}`;
  return `No approver can answer a request here. ${advice}`;
}

function tooMuch({ policy }: Draft, { kind, risk = "all", toolName }: Pick<OpenRequest, "kind" | "risk" | "toolName">) {
  const what = kind === "question" ? "A question" : `${toolName} (${risk})`;
  return `${what} is more than a caller may decide here (${policy.callerApproves}, --caller-approves).`;
}

function denied(message: string): Refusal {
  return { code: "PERMISSION_DENIED", message };
}

function wordsOf(approvalChain: readonly ApproverName[]): string {
  return approvalChain.length === 0 ? "nobody" : approvalChain.join(", ");
}
