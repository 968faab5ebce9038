import { isWithin } from "../../../domain/approvals/risk.ts";
import { RUNGS, type Passed, type Rung } from "../../../domain/approvals/rung.ts";
import type { Refusal } from "../../../domain/error.ts";
import { rungOf, type AnsweredBy, type Decision, type OpenAsk } from "../../../domain/permission.ts";
import { emit, type Draft } from "../draft.ts";

/**
 * The ladder: who is asked, one after another. A request is with one rung at a time, and goes on when that one's time is
 * over, when nobody is there, or when whoever was asked would not say. After the last one it is denied.
 */

type Asked = Pick<OpenAsk, "kind" | "risk">;

/** The first rung that can take the request, of those behind `after`. */
export function nextRung(draft: Draft, ask: Asked, after?: Rung): Rung | undefined {
  const { ladder } = draft.policy;
  const behind = after === undefined ? ladder : ladder.slice(ladder.indexOf(after) + 1);
  return behind.find((rung) => canTake(draft, ask, rung));
}

function canTake(draft: Draft, ask: Asked, rung: Rung): boolean {
  if (rung === "user") return draft.state.noDialog !== true;
  if (rung === "console") return timeOf(draft, rung) > 0;
  return rung !== "caller" || (draft.state.noCaller !== true && mayCallerApprove(draft, ask));
}

/** Where nobody is asked at the console, whoever gives a prompt there still is. */
const AT_CONSOLE_MS = 600_000;

/** How long the rung has, ms; 0 where it is not asked. */
function timeOf({ policy, state }: Draft, rung: Exclude<Rung, "caller">): number {
  const ms = policy.rungMs[rung];
  return rung === "console" && ms === 0 && state.atConsole ? AT_CONSOLE_MS : ms;
}

/** To answer a question approves nothing; but a caller who may approve nothing is not the one to be asked. */
function mayCallerApprove({ policy }: Draft, { kind, risk = "all" }: Asked): boolean {
  return isWithin(kind === "question" ? "reads" : risk, policy.callerApproves);
}

/** Gives the request to the rung; its time begins. */
export function giveTo(draft: Draft, ask: OpenAsk, rung: Rung): void {
  ask.rung = rung;
  ask.rungSince = draft.at;
  if (ask.deliveredAt !== undefined) ask.seenBefore = true;
  delete ask.deliveredAt;
  setTimes(draft, ask);
}

/** When the rung has to have answered, and all of them: read off the state, the policy and what the caller chose. */
export function setTimes(draft: Draft, ask: OpenAsk): void {
  const { policy } = draft;
  const rung = rungOf(ask);
  const { deliveredAt, rungSince = ask.createdAt } = ask;
  const isUnseen = deliveredAt === undefined && !ask.seenBefore;
  const unseenUntil = ask.createdAt + policy.askUnseenMs;
  const own =
    rung === "caller" ? callersEnd(draft, { ...ask, rungSince }) : (deliveredAt ?? rungSince) + timeOf(draft, rung);
  ask.rungEndsAt = own;
  const all = own + timeBehind(draft, ask, rung);
  ask.expiresAt = isUnseen && chosenMs(draft) === undefined ? Math.min(all, unseenUntil) : all;
}

function callersEnd(draft: Draft, { deliveredAt, rungSince }: { deliveredAt?: number; rungSince: number }): number {
  const { policy } = draft;
  const chosen = chosenMs(draft);
  if (chosen !== undefined) return rungSince + chosen;
  if (deliveredAt === undefined) return rungSince + policy.askUnseenMs;
  return Math.min(deliveredAt + policy.askDeliveredMs, rungSince + policy.askMaxMs);
}

/** What the rungs behind it may take, as far as that is known. */
function timeBehind(draft: Draft, ask: Asked, rung: Rung): number {
  const { policy } = draft;
  const next = nextRung(draft, ask, rung);
  if (next === undefined) return 0;
  const own = next === "caller" ? (chosenMs(draft) ?? policy.askDeliveredMs) : timeOf(draft, next);
  return own + timeBehind(draft, ask, next);
}

/** What the caller chose for the prompt, or else for the session. */
function chosenMs({ policy, state }: Draft): number | undefined {
  return state.turn?.prompt?.limits?.askMs ?? policy.askMs;
}

/** To the next rung; false where there is none. */
export function passOn(draft: Draft, ask: OpenAsk, why: Passed): boolean {
  const from = rungOf(ask);
  const to = nextRung(draft, ask, from);
  if (to === undefined) return false;
  emit(draft, { type: "request.passed", data: { requestId: ask.requestId, from, to, why } });
  giveTo(draft, ask, to);
  return true;
}

interface Answering {
  readonly by: AnsweredBy;
  readonly decision: Decision;
}

/**
 * Why this answer does not count. People on the ladder may answer at any time, and deny may everybody on it; a caller
 * allows what he may, and only once those before him had it.
 */
export function whyNotBy(draft: Draft, ask: OpenAsk, { by, decision }: Answering): Refusal | undefined {
  const { ladder } = draft.policy;
  const rung = RUNGS.find((each) => each === by);
  if (rung === undefined) return undefined;
  if (!ladder.includes(rung)) return denied(`Who answers here: ${wordsOf(ladder)} (--approvals); ${rung} does not.`);
  if (rung !== "caller" || decision.behavior === "deny") return undefined;
  if (!mayCallerApprove(draft, ask)) return denied(tooMuch(draft, ask));
  const active = rungOf(ask);
  if (ladder.indexOf(active) >= ladder.indexOf("caller")) return undefined;
  const until = new Date(ask.rungEndsAt ?? ask.expiresAt).toISOString();
  return denied(`The request is with the ${active} until ${until}. Wait with claude_code_check; you may deny it now.`);
}

/** Why nobody is left to ask. */
export function nobodyFor(draft: Draft, ask: OpenAsk): string {
  const { ladder } = draft.policy;
  const advice = "Do it in a way that is allowed, or say what you could not do.";
  if (ladder.includes("caller") && !mayCallerApprove(draft, ask)) return `${tooMuch(draft, ask)} ${advice}`;
  return `Nobody can answer a request here. ${advice}`;
}

function tooMuch({ policy }: Draft, { kind, risk = "all", toolName }: Pick<OpenAsk, "kind" | "risk" | "toolName">) {
  const what = kind === "question" ? "A question" : `${toolName} (${risk})`;
  return `${what} is more than a caller may decide here (${policy.callerApproves}, --caller-approves).`;
}

function denied(message: string): Refusal {
  return { code: "PERMISSION_DENIED", message };
}

function wordsOf(ladder: readonly Rung[]): string {
  return ladder.length === 0 ? "nobody" : ladder.join(", ");
}
