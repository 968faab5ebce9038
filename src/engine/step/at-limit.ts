import type { CommandOf } from "../../domain/command.ts";
import type { Refusal } from "../../domain/error.ts";
import { accountKey, windowsIn } from "../../domain/ledger.ts";
import { type PlanLimit, usedPercent, windowName } from "../../domain/plan.ts";
import type { Turn } from "../../domain/running-turn.ts";
import type { Waiting } from "../../domain/waiting.ts";
import { accept, emit, refuse, TURN_RUNS, type Draft, type Happening } from "./draft.ts";
import { endingOf, type Ending } from "./endings.ts";
import { type HeldBack, limitRefusal, startLimit } from "./limits.ts";
import { lookAndEnd } from "./look.ts";
import { hasRoom, mayTake, noteEnvironment, noteReach, noteSender, senderOf, STRICTER, CROWDED } from "./senders.ts";
import { endProcess, lookBefore, startProcess } from "./starting.ts";
import { restartIdleClock } from "./time.ts";
import { beginTurn, holdQueue, startTurn } from "./turn.ts";
import { attend } from "./unattended.ts";
import { beginWait, heldEnding, lookLater, lookMs, marginOf, waitAway, waitHeld, waitsAtLimits } from "./waits.ts";

/**
 * Turns that stand still at a limit: refused by the API until a window of the plan resets, or held back by the operator's
 * reserve or budget. The decision to send a refused request again is stored before it is sent, so that it is sent at most once.
 */

/** Ends, or holds, a turn whose last request the API has refused at a limit of the plan. */
export function onRefused(draft: Draft, turn: Turn, limit: PlanLimit): void {
  const { at, policy } = draft;
  const { count = 1, since = at } = turn.refusals ?? {};
  const until = againAt(draft, limit, { count, id: turn.id });
  if (!waitsAtLimits(policy, turn.prompt) || until - since > policy.use.waitMaxMs) {
    return report(draft, turn);
  }
  restartIdleClock(draft);
  beginWait(draft, { kind: "usage_limit", window: limit.window, until, since: at });
}

/** Ends a refused turn. Holds waiting prompts, which the API would refuse as well; those that end with their client report it. */
function report(draft: Draft, turn: Turn): void {
  for (const prompt of draft.state.queue) if (!prompt.limits?.endWithClient) prompt.held = true;
  endWait(draft, turn, endingOf(turn));
}

/**
 * Returns the time to send the request again: after the reset. A back-off, doubled each time, follows a refusal whose reset is
 * unknown or past, because a clock may be wrong, and the second of several in a row.
 */
function againAt(
  { at, policy }: Pick<Draft, "at" | "policy">,
  { resetsAt = 0 }: PlanLimit,
  { count, id }: { readonly count: number; readonly id: string },
): number {
  const isSoon = resetsAt <= at || count > 1;
  const backoff = isSoon ? at + lookMs(policy) * 2 ** (count - 1) : 0;
  return Math.max(resetsAt + marginOf(policy, id), backoff);
}

/** Looks whether the wait is over, or its end has moved. */
export function lookAtWait(draft: Draft): void {
  const { at, state } = draft;
  const { process, turn, waiting } = state;
  if (!turn || !waiting) return;
  if (waiting.isSearching || process.phase === "ending") return lookLater(draft);
  const limit = turn.isHeldBack ? startLimit(draft) : undefined;
  if (limit) return waitOn(draft, turn, limit);
  const { until } = turn.isHeldBack ? {} : { ...waiting, ...movedEnd(draft, turn, waiting) };
  if (until !== undefined && until > at) return waitForReset(draft, turn, until);
  const { away } = draft.ledger.known;
  if (away !== undefined) return waitAway(draft, away, waiting.since);
  if (process.phase !== "none") return goOn(draft, turn);
  waiting.isSearching = true;
  lookLater(draft);
  draft.effects.push({ type: "find-environment", turnId: turn.id });
}

/** Waits on with a turn that is held back, unless the end is further away than the operator lets turns wait. */
function waitOn(draft: Draft, turn: Turn, limit: HeldBack): void {
  if (limit.kind !== "workspace" && isTooLong(draft, turn, limit.until + marginOf(draft.policy, turn.id)))
    endWait(draft, turn, heldEnding(limit));
  else waitHeld(draft, turn, limit);
}

/** Waits on for a reset, unless it is further away than the operator lets turns wait. */
function waitForReset(draft: Draft, turn: Turn, until: number): void {
  const { waiting } = draft.state;
  if (!waiting) return;
  if (isTooLong(draft, turn, until)) report(draft, turn);
  else beginWait(draft, { ...waiting, until });
}

function isTooLong({ at, policy, state }: Draft, { refusals }: Turn, until: number): boolean {
  return until - (refusals?.since ?? state.waiting?.since ?? at) > policy.use.waitMaxMs;
}

/** Returns the end of a wait for a reset if newer reports of other processes of the account have moved it. */
function movedEnd(draft: Draft, turn: Turn, { since, window = "" }: Waiting): Pick<Waiting, "until"> {
  const { at, ledger, policy } = draft;
  const { accountId } = ledger.known;
  const account = accountId === undefined ? undefined : windowsIn(ledger.glance(accountKey(accountId)));
  const found = account?.windows[window];
  if (!account || !found || found.at <= since || found.resetsAt === undefined) return {};
  if (found.source !== "rejection" && usedPercent(account, window, at) < 100) return { until: at };
  return { until: found.resetsAt + marginOf(policy, turn.id) };
}

/** Goes on with an environment for the process, or waits for a client that has one. */
export function onEnvironment(draft: Draft, input: Extract<Happening, { type: "environment" }>): void {
  const { environmentId, refusal, turnId } = input;
  const { state } = draft;
  const { process, turn, waiting } = state;
  if (!turn || !waiting?.isSearching || turn.id !== turnId) return;
  if (process.phase !== "none") {
    // A request to Claude Code itself has started a process meanwhile.
    delete waiting.isSearching;
    return lookAtWait(draft);
  }
  if (environmentId === undefined)
    return beginWait(draft, { kind: "environment", isSearching: true, since: waiting.since });
  if (refusal !== undefined) return refuseToGoOn(draft, turn, refusal);
  noteEnvironment(state, environmentId);
  goOn(draft, turn);
}

/** Ends a waiting turn whose session the server would give no prompt by now, such as after a change of its terms. */
function refuseToGoOn(draft: Draft, turn: Turn, message: string): void {
  holdQueue(draft);
  const notStarted = { outcome: "failed", errorSubtype: "start_failed", category: "configuration" } as const;
  endWait(draft, turn, { ...(turn.isHeldBack ? notStarted : endingOf(turn)), message });
}

/** Begins the search for an environment anew at an owner that has taken the session over, or looks at that owner's limits. */
export function waitAgain(draft: Draft): void {
  const { turn, waiting } = draft.state;
  // The former owner had the place of the session, which this node may not have.
  if (waiting?.kind === "workspace") delete waiting.isSearching;
  if (turn && waiting?.isSearching) draft.effects.push({ type: "find-environment", turnId: turn.id });
  else if (turn?.isHeldBack || waiting?.kind === "workspace") lookAtWait(draft);
}

function goOn(draft: Draft, turn: Turn): void {
  if (!turn.isHeldBack) return sendAgain(draft, turn);
  const limit = startLimit(draft);
  if (limit) return waitOn(draft, turn, limit);
  startTurn(draft, turn);
}

/** Stores the decision to send the refused request again, and has it sent. */
function sendAgain(draft: Draft, turn: Turn): void {
  const { effects, state } = draft;
  const id = messageId(turn, state.lastEventId + 1);
  emit(draft, { type: "notice", data: { kind: "waiting", message: AGAIN, details: { messageId: id } } });
  delete state.waiting;
  turn.goneOn = id;
  turn.awaiting.push(id);
  turn.clock.silentMs = 0;
  if (state.process.phase === "none") {
    startProcess(draft, { rerun: false, sendsAgain: true, environmentId: state.environmentId });
  } else lookBefore(draft);
  effects.push({ type: "send-again", id });
}

const AGAIN = "The request that the API has refused is sent once more, unchanged.";

/** Derives an id that no other message of the session has, from the event of the decision. */
function messageId({ id, prompt }: Turn, eventId: number): string {
  const [, tail = "-0000-4000-8000-000000000000"] = UUID.exec(prompt?.promptId ?? id) ?? [];
  return `${eventId.toString(16).padStart(8, "0")}${tail}`;
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12})$/i;

/** Ends a waiting turn, which has no work that could be stopped. */
export function endWait(draft: Draft, turn: Turn, ending: Ending): void {
  delete draft.state.waiting;
  lookAndEnd(draft, turn, ending);
}

/** Sends the refused request of the last turn again, as a turn of the same prompt. */
export function onContinue(draft: Draft, command: CommandOf<"continue">): void {
  const { state } = draft;
  const { turnId } = command.data;
  const cursor = state.lastEventId + 1;
  if (state.turn?.id === turnId) return accept(draft, command, state.turn.eventId ?? cursor);
  const objection = objectionTo(draft, command);
  if (objection) return refuse(draft, command, objection.code, objection.message);
  continueRefused(draft, command);
  accept(draft, command, cursor);
}

function objectionTo(draft: Draft, { data }: CommandOf<"continue">): Refusal | undefined {
  const { closed, refused, turn } = draft.state;
  if (closed) return { code: "CANCELLED", message: `The session was ${closed.reason}.` };
  if (turn) return { code: "SESSION_BUSY", message: TURN_RUNS };
  if (!refused) return { code: "INVALID_ARGUMENT", message: NOTHING_REFUSED };
  const { resetsAt = 0, window } = refused;
  const when = new Date(resetsAt).toISOString();
  if (resetsAt > draft.at)
    return { code: "SESSION_BUSY", message: `The ${windowName(window)} resets at ${when}. Continue after that.` };
  const limit = startLimit(draft);
  if (limit) return limitRefusal(limit);
  const sender = senderOf(draft, data);
  if (!hasRoom(draft.state, sender)) return { code: "SESSION_BUSY", message: CROWDED };
  return mayTake(draft, sender) ? undefined : strictTermsObjection(draft);
}

/** Returns the objection to a client whose terms need another process, if the present one has to stay. */
function strictTermsObjection({ policy, state }: Draft): Refusal | undefined {
  if (policy.ephemeral) return { code: "PERMISSION_DENIED", message: `${STRICTER}, and keeps no transcript.` };
  if (state.background.length === 0) return undefined;
  return { code: "SESSION_BUSY", message: `${STRICTER}, and has background work. Wait for its end, or stop it.` };
}

function continueRefused(draft: Draft, { data }: CommandOf<"continue">): void {
  const { at, state } = draft;
  const { environmentId, limits, turnId } = data;
  const { prompt, window = "" } = state.refused ?? {};
  const sender = senderOf(draft, data);
  const isEnough = mayTake(draft, sender);
  noteReach(state, limits);
  attend(draft);
  if (state.process.phase === "none") noteEnvironment(state, environmentId);
  const { limits: _, sender: _former, ...same } = prompt ?? { promptId: "", eventId: 0 };
  const again = { ...same, ...(limits && { limits }), ...noteSender(state, sender) };
  const turn = beginTurn(draft, turnId, prompt ? { prompt: again } : {});
  turn.awaiting = [];
  if (!isEnough) endProcess(draft);
  if (state.process.phase !== "ending") return sendAgain(draft, turn);
  // The next process sends the request, once the former has gone.
  beginWait(draft, { kind: "usage_limit", window, until: at, since: at });
}

const NOTHING_REFUSED =
  "action: continue sends a request again that the API refused at a limit of the plan. The last turn of the session did not end so. Send a prompt with claude_code_reply.";
