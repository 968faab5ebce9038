import { isWithin } from "../../../domain/approvals/risk.ts";
import { CALLER, CONSOLE, isService, USER, type Passed, type Rung } from "../../../domain/approvals/rung.ts";
import type { CommandOf } from "../../../domain/command.ts";
import type { Refusal } from "../../../domain/error.ts";
import { rungOf, type OpenAsk } from "../../../domain/permission.ts";
import { emit, type Draft } from "../draft.ts";
import { askClockOf, shownTime } from "../time.ts";

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
  if (rung === USER) return draft.state.noDialog !== true && (!draft.state.unattended || mayFormAnswer(draft, ask));
  if (rung === CONSOLE) return timeOf(draft, rung) > 0;
  return rung !== CALLER || (draft.state.noCaller !== true && mayCallerApprove(draft, ask, draft.state.decides));
}

/** Where nobody is asked at the console, whoever gives a prompt there still is: for as long as callers are, and at least this. */
const AT_CONSOLE_MS = 600_000;

/** How long the rung has, ms; 0 where it is not asked. */
function timeOf({ policy, state }: Draft, rung: Rung): number {
  const ms = policy.rungMs[rung] ?? 0;
  return rung === CONSOLE && ms === 0 && state.atConsole ? consoleMs(policy) : ms;
}

function consoleMs({ askDeliveredMs }: Draft["policy"]): number {
  return Math.max(AT_CONSOLE_MS, askDeliveredMs);
}

/** To answer a question approves nothing; but a caller who may approve nothing is not the one to be asked. */
function mayCallerApprove({ policy }: Draft, { kind, risk = "all" }: Asked, decides = false): boolean {
  const bound = decides ? policy.sessionApproves : policy.callerApproves;
  return isWithin(kind === "question" ? "reads" : risk, bound);
}

/** Where nobody is known to sit at the client, what comes back in a form is the caller's answer. */
function mayFormAnswer(draft: Draft, ask: Asked): boolean {
  const { policy, state } = draft;
  return policy.ladder.includes(CALLER) && mayCallerApprove(draft, ask, state.decides);
}

/** Gives the request to the rung; its time begins. */
export function giveTo(draft: Draft, ask: OpenAsk, rung: Rung): void {
  ask.rung = rung;
  ask.rungSince = draft.at;
  askClockOf(ask).rungMs = 0;
  if (ask.deliveredAt !== undefined) ask.seenBefore = true;
  delete ask.deliveredAt;
  delete ask.extended;
  delete ask.filled;
  setTimes(draft, ask);
}

/**
 * What the rung has left to answer in, and all of them: read off the state, the policy and what the caller chose. Set when
 * the rung gets the request, and once more when it has seen it: those are the two moments from which its time runs.
 */
export function setTimes(draft: Draft, ask: OpenAsk): void {
  const { policy } = draft;
  const rung = rungOf(ask);
  const clock = askClockOf(ask);
  const before = ask.extended ? { ...clock } : undefined;
  const isUnseen = ask.deliveredAt === undefined && !ask.seenBefore;
  clock.rungLeftMs = rung === CALLER ? callersTime(draft, ask) : timeOf(draft, rung);
  const all = clock.rungLeftMs + timeBehind(draft, ask, rung);
  const unseen = policy.askUnseenMs - clock.ageMs;
  clock.leftMs = isUnseen && chosenMs(draft) === undefined ? Math.min(all, unseen) : all;
  if (before) clock.rungLeftMs = Math.max(clock.rungLeftMs, before.rungLeftMs);
  if (before) clock.leftMs = Math.max(clock.leftMs, before.leftMs);
  showTimes(draft, ask);
}

function showTimes({ at }: Draft, ask: OpenAsk): void {
  const clock = askClockOf(ask);
  ask.rungEndsAt = shownTime(ask.rungEndsAt, at + clock.rungLeftMs);
  ask.expiresAt = shownTime(ask.expiresAt, at + clock.leftMs);
}

/** Nobody needs to be waited for longer, ms. */
const LONGEST_LEFT_MS = 86_400_000;

/** Only the reason is missing, for which there is a time of its own. */
const ALREADY_DENIED =
  "The user has already denied this request, and is only asked for the reason: nobody can allow it.";

/** As much again as the console has, for those who decide; why not, where they do not decide here, or nothing is left to. */
export function extend(draft: Draft, ask: OpenAsk): Refusal | undefined {
  const { ladder } = draft.policy;
  if (ask.denial !== undefined) return denied(ALREADY_DENIED);
  if (!ladder.includes(CONSOLE)) return denied(`Who answers here: ${wordsOf(ladder)} (--approvals); console does not.`);
  const clock = askClockOf(ask);
  const ms = Math.max(0, Math.min(consoleMs(draft.policy), LONGEST_LEFT_MS - clock.leftMs));
  clock.rungLeftMs += ms;
  clock.leftMs += ms;
  ask.extended = true;
  showTimes(draft, ask);
  return undefined;
}

/** The rung has no longer than this from here on. */
export function endWithin(draft: Draft, ask: OpenAsk, ms: number): void {
  const clock = askClockOf(ask);
  clock.rungLeftMs = Math.min(clock.rungLeftMs, ms);
  clock.leftMs = Math.min(clock.leftMs, clock.rungLeftMs);
  showTimes(draft, ask);
}

function callersTime(draft: Draft, ask: OpenAsk): number {
  const { policy } = draft;
  const { rungMs } = askClockOf(ask);
  const chosen = chosenMs(draft);
  if (chosen !== undefined) return chosen - rungMs;
  if (ask.deliveredAt === undefined) return policy.askUnseenMs - rungMs;
  return Math.min(policy.askDeliveredMs, policy.askMaxMs - rungMs);
}

/** What the rungs behind it may take, as far as that is known. */
function timeBehind(draft: Draft, ask: Asked, rung: Rung): number {
  const { policy } = draft;
  const next = nextRung(draft, ask, rung);
  if (next === undefined) return 0;
  const own = next === CALLER ? (chosenMs(draft) ?? policy.askDeliveredMs) : timeOf(draft, next);
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

type Answering = Pick<CommandOf<"answer">["data"], "asCaller" | "by" | "decides" | "decision">;

/**
 * Why this answer does not count. People on the ladder may answer at any time, and deny may everybody on it; a caller
 * allows what he may, and only once those before him had it.
 */
export function whyNotBy(
  draft: Draft,
  ask: OpenAsk,
  { asCaller, by, decides, decision }: Answering,
): Refusal | undefined {
  const { ladder } = draft.policy;
  if (ask.denial !== undefined && decision.behavior === "allow") return denied(ALREADY_DENIED);
  if (!ladder.includes(by)) return denied(`Who answers here: ${wordsOf(ladder)} (--approvals); ${by} does not.`);
  if ((by !== CALLER && !asCaller) || decision.behavior === "deny") return undefined;
  // Where only people are to answer, no program takes their place; what a service tells may be one by nature.
  if (!isService(by) && !ladder.includes(CALLER))
    return denied(`Who answers here: ${wordsOf(ladder)} (--approvals); a program does not.`);
  if (!mayCallerApprove(draft, ask, decides)) return denied(tooMuch(draft, ask));
  const active = rungOf(ask);
  if (active === by || isBehind(ladder, active)) return undefined;
  const until = new Date(ask.rungEndsAt ?? ask.expiresAt).toISOString();
  return denied(`The request is with the ${active} until ${until}. Wait with claude_code_check; you may deny it now.`);
}

/** Whether those before the caller had it. */
function isBehind(ladder: readonly Rung[], active: Rung): boolean {
  return ladder.includes(CALLER) && ladder.indexOf(active) >= ladder.indexOf(CALLER);
}

/** Why nobody is left to ask. */
export function nobodyFor(draft: Draft, ask: OpenAsk): string {
  const { ladder } = draft.policy;
  const advice = "Do it in a way that is allowed, or say what you could not do.";
  if (ladder.includes(CALLER) && !mayCallerApprove(draft, ask, draft.state.decides))
    return `${tooMuch(draft, ask)} ${advice}`;
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
