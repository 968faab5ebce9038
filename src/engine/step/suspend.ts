import type { CommandOf } from "../../domain/command.ts";
import type { SuspendRequest } from "../../domain/control.ts";
import type { SessionState } from "../../domain/session.ts";
import { accept, emit, type Draft } from "./draft.ts";
import { interruptTurn } from "./stop.ts";
import { lostWorkText } from "./subagents.ts";
import { endProcess } from "./starting.ts";
import { holdQueue } from "./turn.ts";

/** Closes the process once nothing runs. The next prompt resumes the session. */
export function suspend(draft: Draft, command: CommandOf<"control">, { reason }: SuspendRequest): void {
  const { policy, state } = draft;
  const cursor = state.lastEventId + 1;
  if (state.closed) return accept(draft, command, cursor, {});
  // An ephemeral session consists of its process, so only a forbidden mode ends the process.
  if (reason === "forbidden") holdForbidden(draft);
  if (state.process.phase !== "none" && (!policy.ephemeral || reason === "forbidden")) {
    state.suspending = true;
    if (reason !== undefined) state.suspendReason = reason;
  }
  accept(draft, command, cursor, {});
}

/** Holds waiting prompts. A turn that has begun runs to its end. */
function holdForbidden(draft: Draft): void {
  const { process, queue, turn, waiting } = draft.state;
  if (process.phase === "none" && !turn && queue.every(({ held }) => held)) return;
  const hasBegun =
    !waiting && process.phase !== "ending" && !(process.phase === "starting" && process.waiting === true);
  if (turn && !hasBegun) interruptTurn(draft, turn, { by: "operator" });
  holdQueue(draft);
  const what = "Its process ends after the current turn; waiting prompts are held.";
  const advice = "Change its mode (set_permission_mode) and release them, or send a new prompt.";
  const message = `The operator no longer allows the permission mode of this session. ${what} ${advice}`;
  emit(draft, { type: "notice", data: { kind: "warning", message } });
}

/**
 * Ends a suspended process once idle, or while its turn waits at a limit: a later process goes on with the turn. Called after
 * each step. Background tasks keep the process unless `suspendReason` is set.
 */
export function suspendWhenIdle(draft: Draft): void {
  if (isIdleAtDrained(draft)) return endProcess(draft);
  const { process, queue, suspending, suspendReason, turn } = draft.state;
  if (!suspending) return;
  if (process.phase !== "starting" && process.phase !== "live") return cancelSuspend(draft.state);
  const isUp = process.phase === "live" || suspendReason === "forbidden";
  const isBusy = turn !== null || queue.some(({ held }) => !held);
  if (!isUp || (isBusy && !waitsAtLimit(draft)) || isKeptByBackground(draft)) return;
  if (suspendReason === "slot") noteEndedBackground(draft);
  cancelSuspend(draft.state);
  endProcess(draft);
}

/** True if nothing runs, and this node may begin no turn: another node takes the next prompt. */
function isIdleAtDrained({ ledger, policy, state: { background, process, turn } }: Draft): boolean {
  const mayGo = process.phase === "live" && turn === null && background.length === 0 && !policy.ephemeral;
  return mayGo && ledger.known.away !== undefined;
}

/** True if the process may close although a turn has begun. An operator's objection to the mode waits for the end of the turn. */
function waitsAtLimit({ state: { suspendReason, turn, waiting } }: Draft): boolean {
  return turn !== null && waiting !== undefined && suspendReason === undefined;
}

function isKeptByBackground({ state }: Draft): boolean {
  return state.background.length > 0 && state.suspendReason === undefined;
}

function noteEndedBackground(draft: Draft): void {
  const tasks = draft.state.background;
  if (tasks.length === 0) return;
  const message = lostWorkText(tasks, "Other sessions waited for a slot (--max-live), and no other could be freed. ");
  emit(draft, { type: "notice", data: { kind: "warning", message, details: { tasks } } });
}

/** Withdraws the request to suspend, because a new prompt uses the process again. */
export function cancelSuspend(state: SessionState): void {
  delete state.suspending;
  delete state.suspendReason;
}
