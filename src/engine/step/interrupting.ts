import type { Turn } from "../../domain/session.ts";
import { settleAllRequests } from "./requests/requests.ts";
import type { Draft } from "./draft.ts";
import { endTurn, holdQueue, type Ending } from "./turn.ts";

/** Stops the turn unless something does already; what waits behind it is held. */
export function interruptTurn(draft: Draft, turn: Turn, by: string): void {
  if (turn.stopping) return;
  const { at, effects, state } = draft;
  holdQueue(draft);
  settleAllRequests(draft, "cancel");
  // One that waits for a slot has nobody yet who could be interrupted.
  const waits = state.process.phase === "starting" && state.process.waiting === true;
  turn.stopping = { reason: "interrupt", by, at, forMs: 0, killed: waits };
  if (turn.pending) endTurn(draft, turn, interruptedBy(by));
  else effects.push({ type: waits ? "kill" : "interrupt" });
}

export function interruptedBy(by: string): Ending {
  return { outcome: "interrupted", errorSubtype: "interrupted", message: `The turn was interrupted by ${by}.` };
}
