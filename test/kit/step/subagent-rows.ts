import type { SessionStatus } from "../../../src/domain/session.ts";
import type { InputName, StateName } from "./cases.ts";

/** Rows of `TABLE` (rows.ts): work that outlives its turn. */
export const SUBAGENT_ROWS: Partial<Record<StateName, [InputName, told: string, SessionStatus][]>> = {
  "subagent left": [
    ["idle", "turn.ended(failed error_max_budget_usd)", "error"],
    ["idle, a subagent left", "stop-tasks", "running"],
    ["busy", "", "running"],
    ["tick", "", "running"],
    ["tick when due", "kill", "running"],
    ["tool use", "message", "running"],
    ["result", "message", "running"],
    ["spent too much", "", "running"],
    ["asked", "answer:deny", "running"],
    ["interrupt", "ok", "running"],
    ["cancel", "turn.ended(cancelled CANCELLED) session.closed(cancelled) stop ok", "cancelled"],
    ["prompt", "SESSION_BUSY", "running"],
    ["prompt, steer", "prompt.queued ok", "running"],
    ["ended", "process.exited background.changed turn.ended(failed error_max_budget_usd)", "error"],
    ["recovered", "process.exited background.changed turn.ended(failed error_max_budget_usd) end-leftover", "error"],
    ["shutdown", "turn.ended(interrupted shutdown) stop", "idle"],
  ],
  // Only the exit ends the turn, because later signals of a process being killed do not count.
  "subagent left, killed": [
    ["idle", "", "running"],
    ["idle, a subagent left", "", "running"],
    ["tick when due", "", "running"],
    ["killed", "process.exited(expected) background.changed turn.ended(failed error_max_budget_usd)", "error"],
  ],
  "subagent left, a prompt waits": [
    ["idle", "turn.ended(failed error_max_budget_usd) turn.started(prompt) push", "running"],
    ["interrupt", "ok", "running"],
  ],
  "idle, shell at work, to rest": [
    ["background ends", "background.changed stop", "idle"],
    ["prompt", "prompt.queued turn.started(prompt) push ok", "running"],
  ],
};
