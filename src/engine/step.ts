import type { SessionEvent } from "../domain/event.ts";
import type { SessionState } from "../domain/session.ts";
import type { Policy } from "./policy/policy.ts";
import { onCommand } from "./step/commands.ts";
import { onControlled } from "./step/control.ts";
import { onTick } from "./step/deadlines.ts";
import type { Draft, Effect, Happening, Input } from "./step/draft.ts";
import { onAttached, onRecovered } from "./step/process.ts";
import { policyOfTurn } from "./policy/of-turn.ts";
import { forgetSenders } from "./step/senders.ts";
import { onReach } from "./step/requests/requests.ts";
import { suspendWhenIdle } from "./step/suspend.ts";
import { onSignal } from "./step/signals.ts";
import { elapse } from "./step/time.ts";
import { endProcess } from "./step/starting.ts";
import { endTurn, holdQueue } from "./step/turn.ts";
import { attend, elapseAttendance } from "./step/unattended.ts";

export { nextDeadline } from "./step/deadlines.ts";
export type { ControlOutcome, Effect, Happening, Input } from "./step/draft.ts";

export interface Step {
  state: SessionState;
  events: SessionEvent[];
  effects: Effect[];
}

/**
 * The only writer of a session's state: a pure function of the state and what happened to it. The actor stores `state`
 * and `events` in one transaction, then performs the effects.
 *
 * A session is `open` until it is `closed`, and then stays so. While open:
 *
 *   turn     none ── prompt, or Claude Code is busy by itself ──> running ── Claude Code is idle ──> none
 *            A turn of origin `prompt` cannot end while Claude Code still owes its prompt (`awaiting`), one of origin
 *            `self` has no prompt. The first reason to stop it (`stopping`) decides how it ended, else the last result
 *            does; a process that dies in it ends it as lost.
 *   requests only inside a turn. Rules first; then each is with one approver at a time (requests/approval-chain.ts), and goes on when
 *            the time limit of that one is over or it gives up. Answered once, by the first of: people, caller, time, interrupt, end of the turn.
 *   queue    a prompt during a turn of origin `prompt` is refused (SESSION_BUSY) unless it says that it waits or joins
 *            the turn (`whenBusy`); during one of origin `self` it waits. An interrupt, a shutdown or a loss holds what
 *            waits (`held`) until the caller releases or drops it; a new prompt does not wait for what is held.
 *   process  none -> starting -> live -> ending -> none, orthogonal to turns: a turn needs one, idleness closes it.
 *            A prompt that meets an ending process waits for its exit (`turn.pending`).
 *   owner    one that died leaves a process, which its next owner ends (`recovered`), or goes on with (`attached`): then turn,
 *            requests and queue stay as they are, what may not have been said to Claude Code is said again, and the lines follow.
 *            A process is given its first prompt when it is recorded (`started`): of a turn whose process is not, nothing has run,
 *            and the next owner starts another one for it.
 *   control  what is asked of Claude Code itself is handed to the process and answered when it has (`controlled`).
 *
 * Time is an input: each says how much has passed (step/time.ts), and `tick` nothing else; how long it is to the next thing
 * that is due is `nextDeadline`, read off the state.
 * Signals of a process that is not the present one are dropped: a late exit must not end the next turn.
 */
export function step(before: SessionState, input: Input, policy: Policy): Step {
  const state = structuredClone(before);
  const draft: Draft = {
    state,
    events: [],
    effects: [],
    at: input.at,
    base: policy,
    get policy() {
      return policyOfTurn(policy, state);
    },
  };
  elapse(draft.state, input.elapsedMs, input.at);
  elapseAttendance(draft.state, input.elapsedMs, draft.policy);
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
    case "tick":
      onTick(draft);
      break;
    case "attended":
      attend(draft);
      break;
    case "reach":
      onReach(draft, input.reach);
      break;
    case "recovered":
      onRecovered(draft, input);
      break;
    case "attached":
      onAttached(draft);
      break;
    case "shutdown":
      onShutdown(draft);
      break;
  }
  suspendWhenIdle(draft);
  forgetSenders(state);
  return { state: draft.state, events: draft.events, effects: draft.effects };
}

/** What is to be stepped, and when it came: by the clock for people, and by the one that counts. */
export type Arrival = Happening & { readonly at: number; readonly tick: number };

/** All of these in turn, as one step. `counted`: up to when the state counts time awake. */
export function stepAll(
  state: SessionState,
  arrivals: readonly Arrival[],
  { counted, policy }: { readonly counted: number; readonly policy: Policy },
): Step {
  const taken: Step = { state, events: [], effects: [] };
  let before = counted;
  for (const { tick, ...happening } of arrivals) {
    const next = step(taken.state, { ...happening, elapsedMs: tick - before }, policy);
    before = tick;
    taken.state = next.state;
    taken.events.push(...next.events);
    taken.effects.push(...next.effects);
  }
  return taken;
}

function isPresent({ process }: SessionState, processId: string): boolean {
  return process.phase !== "none" && process.id === processId;
}

/** Stored with what the line has told: the next owner is told what follows it. */
function noteLine({ process }: SessionState, line = 0): void {
  if (process.phase !== "none" && line > (process.line ?? 0)) process.line = line;
}

/** The owner goes away in good order: what runs is recorded as interrupted first, then its process is stopped. */
function onShutdown(draft: Draft): void {
  const { effects, state } = draft;
  const message = "The server was shut down in the middle of the turn. Reply to the session to go on.";
  holdQueue(draft);
  if (state.turn) endTurn(draft, state.turn, { outcome: "interrupted", errorSubtype: "shutdown", message }, "shutdown");
  // Recorded as ending, so that the next owner does not resume the session beside it.
  if (state.process.phase === "ending") effects.push({ type: "stop" });
  endProcess(draft);
}
