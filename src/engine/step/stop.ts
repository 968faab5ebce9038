import type { SessionState } from "../../domain/session.ts";
import type { Turn } from "../../domain/running-turn.ts";
import { endWait } from "./at-limit.ts";
import { emit, type Draft } from "./draft.ts";
import { endProcess } from "./starting.ts";
import { endTurn, holdQueue } from "./turn.ts";
import type { Ending } from "./endings.ts";
import { endNow, stopSettling } from "./verify.ts";
import { settleAllRequests } from "./requests/requests.ts";

type Closed = Omit<NonNullable<SessionState["closed"]>, "at">;

/** Closes the session permanently, without waiting: the turn is over for every reader, and the process stops later. */
export function closeSession(draft: Draft, ending: Ending, closed: Closed): void {
  const { at, effects, state } = draft;
  if (state.closed) return;
  state.closed = { ...closed, at };
  if (state.turn) endNow(draft, state.turn, ending, "cancel");
  for (const { promptId } of state.queue.splice(0)) {
    emit(draft, { type: "prompt.dropped", data: { promptId, reason: closed.reason } });
  }
  emit(draft, { type: "session.closed", data: closed });
  if (state.process.phase === "ending") effects.push({ type: "stop" });
  endProcess(draft);
}

/** Closes an ephemeral session after its process has ended, because nothing is left that another process could go on with. */
export function expireSession(draft: Draft, ofTurn?: Ending): void {
  const message = "The session's process has ended, and the session was not to be kept (persistSession: false).";
  const lost: Ending = { outcome: "lost", errorSubtype: "lost", message };
  // The message of a lost turn advises to reply, which is impossible here.
  closeSession(draft, ofTurn && ofTurn.outcome !== "lost" ? ofTurn : lost, {
    reason: "expired",
    by: "server",
    message,
  });
}

/** Reason for dropping a prompt with `endWithClient` before its turn. */
export const CLIENT_GONE = "client_gone";

/** Drops a prompt that waits for its turn; a no-op for any other `promptId`. */
export function dropPrompt(draft: Draft, promptId: string, reason: string): void {
  const { state } = draft;
  if (!state.queue.some((prompt) => prompt.promptId === promptId)) return;
  state.queue = state.queue.filter((prompt) => prompt.promptId !== promptId);
  emit(draft, { type: "prompt.dropped", data: { promptId, reason } });
}

/** Stops the turn unless it is stopping already. Holds the waiting prompts unless `holdsQueue` is false. */
export function interruptTurn(
  draft: Draft,
  turn: Turn,
  { by, holdsQueue = true }: { readonly by: string; readonly holdsQueue?: boolean },
): void {
  if (turn.settling) {
    if (holdsQueue) holdQueue(draft);
    return stopSettling(draft, turn, "interrupt", by);
  }
  if (turn.stopping) return;
  const { at, effects, state } = draft;
  if (holdsQueue) holdQueue(draft);
  if (state.waiting) return endWait(draft, turn, interruptedBy(by, turn));
  settleAllRequests(draft, "cancel");
  // A session that waits for a slot has no process to interrupt yet.
  const waits = state.process.phase === "starting" && state.process.waiting === true;
  turn.stopping = { reason: "interrupt", by, at, forMs: 0, killed: waits };
  if (turn.pending) endTurn(draft, turn, interruptedBy(by));
  else effects.push({ type: waits ? "kill" : "interrupt" });
}

export function interruptedBy(by: string, { isHeldBack = false }: Pick<Turn, "isHeldBack"> = {}): Ending {
  const given = isHeldBack ? " The prompt was not given to Claude Code." : "";
  return { outcome: "interrupted", errorSubtype: "interrupted", message: `The turn was interrupted by ${by}.${given}` };
}
