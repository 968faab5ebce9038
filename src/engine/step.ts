import type { SessionEvent } from "../domain/event.ts";
import type { SessionState } from "../domain/session.ts";
import type { LedgerChange } from "./ports.ts";
import type { Policy } from "./policy/policy.ts";
import { onCommand } from "./step/commands.ts";
import { onControlled } from "./step/control.ts";
import { onTick } from "./step/deadlines.ts";
import type { Draft, Effect, Happening, Input } from "./step/draft.ts";
import { onAttached, onRecovered } from "./step/process.ts";
import { policyOfTurn } from "./policy/turn-policy.ts";
import { forgetSenders } from "./step/senders.ts";
import { onEnvironment } from "./step/at-limit.ts";
import { joinChanges, type Known, knownAfter, LedgerDraft, NOTHING_KNOWN } from "./step/ledger-draft.ts";
import { settleBudgets } from "./step/limits.ts";
import { onReach } from "./step/requests/requests.ts";
import { suspendWhenIdle } from "./step/suspend.ts";
import { onSignal } from "./step/signals.ts";
import { elapse } from "./step/time.ts";
import { endProcess } from "./step/starting.ts";
import { holdQueue } from "./step/turn.ts";
import { endNow, followRequest, onEvidence } from "./step/verify.ts";
import { attend, elapseAttendance } from "./step/unattended.ts";

export { nextDeadline } from "./step/deadlines.ts";
export { type Known, NOTHING_KNOWN } from "./step/ledger-draft.ts";
export { TRACELESS } from "./step/draft.ts";
export type { ControlOutcome, Effect, Happening, Input, JudgedVerification } from "./step/draft.ts";

export interface Step {
  state: SessionState;
  events: SessionEvent[];
  effects: Effect[];
  ledger: LedgerChange[];
}

/**
 * Computes the next state of a session: a pure function of the state and one input, and the only writer of `SessionState`. The
 * actor stores `state` and `events` in one transaction, then performs `effects`.
 *
 * A session is `open` until `closed`, which is final. While open:
 *
 *   turn     none ── prompt, or Claude Code is busy by itself ──> running ── Claude Code is idle ──> none
 *            A turn of origin `prompt` cannot end while Claude Code still owes a prompt (`awaiting`); a turn of origin `self`
 *            has no prompt. The first reason to stop the turn (`stopping`) decides the outcome, otherwise the last result. A
 *            process that dies in a turn ends the turn as lost.
 *   requests Only inside a turn. Rules decide first; then a request is with one approver at a time (requests/approval-chain.ts)
 *            and passes on once the approver's time is over or the approver gives up. Answered once, by the first of: people,
 *            caller, time, interrupt, end of the turn.
 *   queue    A prompt during a turn of origin `prompt` is refused (SESSION_BUSY) unless `whenBusy` lets the prompt wait or join
 *            the turn; during a turn of origin `self` the prompt waits. An interrupt, a shutdown or a loss holds waiting
 *            prompts (`held`) until the caller releases or drops them; a new prompt does not wait for held prompts.
 *   process  none -> starting -> live -> ending -> none, orthogonal to turns: a turn needs a process, idleness closes the
 *            process. A prompt that meets an ending process waits for the exit (`turn.pending`).
 *   owner    A dead owner leaves a process. The next owner ends the process (`recovered`) or goes on with it (`attached`). In
 *            the second case turn, requests and queue stay as they are, messages that may not have reached Claude Code are
 *            sent again, and its unread lines follow. A process gets its first prompt once recorded (`started`): a turn
 *            without a recorded process has run nothing, so the next owner starts another process.
 *   control  A request to Claude Code itself is handed to the process and answered after the process has (`controlled`).
 *
 * Time is an input: each input says how much has passed (step/time.ts), and `tick` nothing else. `nextDeadline` derives the
 * time until the next deadline from the state. Signals of an earlier process are dropped, because a late exit must not end the
 * next turn.
 */
export function step(before: SessionState, input: Input, policy: Policy, known: Known = NOTHING_KNOWN): Step {
  const state = structuredClone(before);
  const draft: Draft = {
    state,
    events: [],
    effects: [],
    at: input.at,
    base: policy,
    ledger: new LedgerDraft(known),
    get policy() {
      return policyOfTurn(policy, state);
    },
  };
  elapse(draft.state, input.elapsedMs, input.at);
  elapseAttendance(draft.state, input.elapsedMs, draft.policy);
  takeInput(draft, input);
  followRequest(draft);
  if (!state.turn) settleBudgets(draft, undefined);
  suspendWhenIdle(draft);
  forgetSenders(state);
  return { state: draft.state, events: draft.events, effects: draft.effects, ledger: draft.ledger.changes };
}

/** Handles one input. */
function takeInput(draft: Draft, input: Input): void {
  if (isNews(input)) return takeNews(draft, input);
  switch (input.type) {
    case "command":
      onCommand(draft, input.command, input);
      break;
    case "signal":
      if (!isPresent(draft.state, input.processId)) break;
      noteLine(draft.state, input.line);
      onSignal(draft, input.signal);
      break;
    case "controlled":
      onControlled(draft, input);
      break;
    case "baseline":
    case "judged":
    case "verified":
    case "looked":
      onEvidence(draft, input);
      break;
    case "environment":
      onEnvironment(draft, input);
      break;
  }
}

const NEWS = ["attached", "attended", "reach", "recovered", "shutdown", "tick"] as const;
type News = Extract<Input, { type: (typeof NEWS)[number] }>;

function isNews(input: Input): input is News {
  return NEWS.some((type) => type === input.type);
}

/** Handles news of clients, of the owner and of the time. */
function takeNews(draft: Draft, input: News): void {
  if (input.type === "tick") onTick(draft);
  else if (input.type === "attended") attend(draft);
  else if (input.type === "reach") onReach(draft, input.reach);
  else if (input.type === "recovered") onRecovered(draft, input);
  else if (input.type === "attached") onAttached(draft);
  else onShutdown(draft);
}

/** A happening with its arrival: `at` in ms since the epoch, for people; `tick` in ms of time awake, for time limits. */
export type Arrival = Happening & { readonly at: number; readonly tick: number };

/** Applies all `arrivals` in order, as one step. `counted`: tick up to which the state counts time awake. */
export function stepAll(
  state: SessionState,
  arrivals: readonly Arrival[],
  { counted, known, policy }: { readonly counted: number; readonly known: Known; readonly policy: Policy },
): Step {
  const taken: Step = { state, events: [], effects: [], ledger: [] };
  let before = counted;
  for (const { tick, ...happening } of arrivals) {
    const next = step(taken.state, { ...happening, elapsedMs: tick - before }, policy, knownAfter(known, taken.ledger));
    before = tick;
    taken.state = next.state;
    taken.events.push(...next.events);
    taken.effects.push(...next.effects);
    taken.ledger = joinChanges(taken.ledger, next.ledger);
  }
  return taken;
}

function isPresent({ process }: SessionState, processId: string): boolean {
  return process.phase !== "none" && process.id === processId;
}

/** Records the last line that the state covers, so that a next owner receives only later lines. */
function noteLine({ process }: SessionState, line = 0): void {
  if (process.phase !== "none" && line > (process.line ?? 0)) process.line = line;
}

/**
 * Records the running turn as interrupted before the process is stopped. A turn that waits at a limit waits on without an owner,
 * because nothing of it runs.
 */
function onShutdown(draft: Draft): void {
  const { effects, policy, state } = draft;
  const message = "The server was shut down in the middle of the turn. Reply to the session to go on.";
  const waitsOn = state.turn !== null && state.waiting !== undefined && !policy.ephemeral;
  if (!waitsOn) holdQueue(draft);
  if (state.turn && !waitsOn)
    endNow(draft, state.turn, { outcome: "interrupted", errorSubtype: "shutdown", message }, "shutdown");
  // Leaves the process in phase `ending`, so that the next owner does not resume the session beside it.
  if (state.process.phase === "ending") effects.push({ type: "stop" });
  endProcess(draft);
}
