import type { SessionStatus } from "../../../src/domain/session.ts";
import type { InputName, StateName } from "./cases.ts";

/** Rows of `TABLE` (rows.ts): turns at limits. */

const AGAIN = "notice send-again";
const START = "turn.started(prompt) push";

export const LIMIT_ROWS: Partial<Record<StateName, [InputName, told: string, SessionStatus][]>> = {
  "refused at a limit": [
    ["continue", "SESSION_BUSY", "error"],
    ["prompt", `prompt.queued ${START} ok`, "running"],
  ],
  "refused at a limit, reset passed": [["continue", `turn.started(prompt) ${AGAIN} ok`, "running"]],
  "refused, ends with its client": [["continue", "SESSION_BUSY", "error"]],
  "waiting at a limit": [
    ["idle", "", "running"],
    ["tick when due", "", "running"],
    ["prompt", "SESSION_BUSY", "running"],
    ["prompt, queue", "prompt.queued ok", "running"],
    ["prompt, steer", "prompt.queued ok", "running"],
    ["interrupt", "turn.ended(interrupted) ok", "idle"],
    ["cancel", "turn.ended(cancelled CANCELLED) session.closed(cancelled) stop ok", "cancelled"],
    ["continue", "SESSION_BUSY", "running"],
    ["busy", "", "running"],
    ["killed", "process.exited", "running"],
    ["recovered", "process.exited end-leftover", "running"],
    ["shutdown", "stop", "running"],
  ],
  "waiting at a limit, another session found the window free": [["tick when due", AGAIN, "running"]],
  "refused at a limit, not idle yet": [
    ["killed", "process.exited notice", "running"],
    ["recovered", "process.exited notice end-leftover", "running"],
  ],
  "waiting at a limit, a prompt waits": [["interrupt", "turn.ended(interrupted) ok", "idle"]],
  "waiting at a limit, process closed": [["ended", "process.exited(expected)", "running"]],
  "waiting at a limit, no process": [
    ["recovered", "", "running"],
    ["shutdown", "", "running"],
  ],
  "waiting at a limit, in a shim": [["attached", "notice reattach", "running"]],
  "waiting at a limit, kept nowhere": [
    ["killed", "process.exited turn.ended(failed usage_limit) session.closed(expired)", "closed"],
  ],
  "searching an environment": [
    ["environment found", "notice start send-again", "running"],
    ["no environment", "notice", "running"],
    ["recovered", "find-environment", "running"],
    ["tick when due", "", "running"],
  ],
  "waiting for an environment": [
    ["environment found", "notice start send-again", "running"],
    ["no environment", "", "running"],
    ["recovered", "find-environment", "running"],
    ["interrupt", "turn.ended(interrupted) ok", "idle"],
  ],
  "refused request sent again": [
    ["killed", "process.exited turn.ended(lost)", "error"],
    ["recovered", "process.exited turn.ended(lost) end-leftover", "error"],
    ["interrupt", "interrupt ok", "running"],
  ],
  "refused request sent again by a new process": [
    ["recovered", "process.exited turn.ended(lost) end-leftover", "error"],
    ["recovered, may start", "notice end-leftover start send-again", "running"],
  ],
  "refused again": [["tick when due", "", "running"]],
  "refused again, at the end of the back-off": [["tick when due", AGAIN, "running"]],
  "answered after the reset": [["idle", "turn.ended(done)", "idle"]],
  continued: [["killed", "process.exited turn.ended(lost)", "error"]],
  "idle, above the 5-hour line": [["prompt", "SESSION_BUSY", "idle"]],
  "idle, above the 5-hour line, waits": [["prompt", "prompt.queued turn.started(prompt) notice ok", "running"]],
  "held back by the reserve": [
    ["interrupt", "turn.ended(interrupted) ok", "idle"],
    ["tick when due", "", "running"],
    ["shutdown", "stop", "running"],
  ],
  "running, above the 5-hour line, a prompt waits": [
    ["tool use", "message", "running"],
    ["result", "message", "running"],
  ],
  "running, above the weekly line": [
    ["message", "message", "running"],
    ["tool use", "message interrupt", "running"],
  ],
  "running, with a reserve": [
    ["tool use", "message", "running"],
    ["overage in use", "interrupt", "running"],
  ],
  "ended at the weekly line": [["prompt", "SESSION_BUSY", "idle"]],
  "idle, budget spent": [["prompt", "SESSION_BUSY", "idle"]],
  "running, with a budget": [
    ["spent too much", "interrupt", "running"],
    ["spent", "", "running"],
  ],
};
