import type { Turn } from "../../domain/session.ts";
import type { AgentSignal } from "../ports.ts";
import type { Draft } from "./draft.ts";

/** What Claude Code has spent so far, told between results. The first word of a session that began as another's counts as that one's. */
export function onSpent(draft: Draft, { atStart, costUsdTotal }: Extract<AgentSignal, { type: "spent" }>): void {
  const { state } = draft;
  if (atStart) {
    const isInherited = state.origin !== undefined && state.totals.turns === 0 && state.totals.costUsd === 0;
    if (isInherited) state.reportedCostUsd = state.savedCostUsd = costUsdTotal;
  } else if (state.turn) {
    checkBudget(draft, state.turn, costUsdTotal);
  }
}

/** Each prompt has the budget anew, whatever process it runs in. Claude Code's own count is of its process. */
export function checkBudget({ at, effects, policy, state }: Draft, turn: Turn, costUsdTotal: number): void {
  const spent = turn.costUsd + Math.max(0, costUsdTotal - state.reportedCostUsd);
  if (policy.budgetUsd === undefined || spent < policy.budgetUsd || turn.stopping || turn.pending) return;
  turn.stopping = { reason: "budget", by: "server", at, forMs: 0, killed: false };
  effects.push({ type: "interrupt" });
}
