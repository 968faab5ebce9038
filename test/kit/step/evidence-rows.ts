import type { SessionStatus } from "../../../src/domain/session.ts";
import type { InputName, StateName } from "./cases.ts";

/** Rows of `TABLE` (rows.ts): ends of turns on a server with receipts. */

const INTERRUPTED = "verification.ended(interrupted)";
const CANCELS = "turn.ended(cancelled CANCELLED) session.closed(cancelled)";

export const EVIDENCE_ROWS: Partial<Record<StateName, [InputName, told: string, SessionStatus][]>> = {
  "running, with receipts": [
    ["baseline", "turn.baseline", "running"],
    ["looked", "", "running"],
    ["interrupt", "interrupt ok", "running"],
    ["cancel", `${CANCELS} forget stop ok`, "cancelled"],
    ["verify", "SESSION_BUSY", "running"],
    ["killed", "process.exited look", "running"],
    ["recovered", "process.exited end-leftover look", "running"],
    ["shutdown", "turn.ended(interrupted shutdown) forget stop", "idle"],
  ],
  looking: [
    ["baseline", "", "running"],
    ["looked", "turn.receipt turn.ended(done) forget", "idle"],
    ["looked, nothing to be read", "turn.ended(done) forget", "idle"],
    ["idle", "", "running"],
    ["busy", "", "running"],
    ["interrupt", "ok", "running"],
    // The work was over, so the end of the session does not change its outcome.
    ["cancel", "turn.ended(done) session.closed(cancelled) forget stop ok", "cancelled"],
    ["prompt", "prompt.queued ok", "running"],
    ["prompt, steer", "prompt.queued prompt.steered push ok", "running"],
    ["tick when due", "turn.ended(done) forget", "idle"],
    ["killed", "process.exited", "running"],
    ["recovered", "process.exited end-leftover look", "running"],
    ["shutdown", "turn.ended(done) forget stop", "idle"],
  ],
  "looking, prompt waits": [
    ["looked", "turn.receipt turn.ended(done) turn.started(prompt) forget baseline push", "running"],
  ],
  "looking, process gone": [
    ["looked", "turn.receipt turn.ended(done) forget", "idle"],
    ["recovered", "look", "running"],
    ["attached", "look", "running"],
  ],
  "looking after an interrupt": [["looked", "turn.receipt turn.ended(interrupted) forget", "idle"]],
  "judging commands": [
    ["commands judged", "permission.asked", "waiting_permission"],
    ["commands allowed", "verification.started(1/2) verify", "running"],
    ["commands denied", "verification.ended(denied) look", "running"],
    ["commands refused", "verification.ended(refused) look", "running"],
    ["interrupt", `${INTERRUPTED} look ok`, "running"],
    ["tick when due", "verification.ended(refused) look", "running"],
    ["recovered", "process.exited end-leftover judge", "running"],
  ],
  "asking for commands": [
    ["idle", "", "waiting_permission"],
    ["busy", "permission.answered(deny withdrawn)", "running"],
    ["asked", "permission.answered(deny withdrawn) permission.asked", "waiting_permission"],
    ["interrupt", `permission.answered(deny withdrawn) ${INTERRUPTED} look ok`, "running"],
    ["prompt, steer", "prompt.queued permission.answered(deny withdrawn) prompt.steered push ok", "running"],
    ["tick when due", "permission.answered(deny timeout) verification.ended(denied) answer:deny look", "running"],
    ["killed", "process.exited", "waiting_permission"],
    ["recovered", "process.exited end-leftover", "waiting_permission"],
  ],
  "asking for commands, process gone": [["recovered", "", "waiting_permission"]],
  "commands run": [
    ["commands passed", "verification.ended(passed) look", "running"],
    ["command failed", "verification.ended(failed) prompt.queued prompt.steered push", "running"],
    ["command took too long", "verification.ended(timeout) prompt.queued prompt.steered push", "running"],
    ["commands lost", "verification.ended(lost) look", "running"],
    ["busy", "stop-checks", "running"],
    ["interrupt", `${INTERRUPTED} stop-checks look ok`, "running"],
    ["cancel", `${INTERRUPTED} ${CANCELS} stop-checks forget stop ok`, "cancelled"],
    ["prompt", "SESSION_BUSY", "running"],
    ["prompt, queue", "prompt.queued ok", "running"],
    ["prompt, steer", "prompt.queued prompt.steered stop-checks push ok", "running"],
    ["tick when due", "verification.ended(timeout) stop-checks look", "running"],
    ["killed", "process.exited", "running"],
    ["recovered", "process.exited end-leftover judge", "running"],
    ["shutdown", `${INTERRUPTED} turn.ended(interrupted shutdown) stop-checks forget stop`, "idle"],
  ],
  "commands run, in a shim": [["attached", "notice reattach judge", "running"]],
  "commands run, process gone": [
    ["command failed", "verification.ended(failed) prompt.queued prompt.steered start push", "running"],
    ["recovered", "judge", "running"],
  ],
  repairing: [
    ["commands passed", "", "running"],
    ["recovered", "process.exited end-leftover look", "running"],
  ],
  "repaired, commands run": [
    ["commands passed", "verification.ended(passed) look", "running"],
    ["command failed", "verification.ended(failed) look", "running"],
  ],
  "commands run on demand": [
    ["commands passed", "verification.ended(passed) look", "running"],
    ["prompt", "prompt.queued ok", "running"],
    ["verify", "SESSION_BUSY", "running"],
  ],
  "commands run on demand, without a process": [
    ["commands passed", "verification.ended(passed) look", "running"],
    ["shutdown", `${INTERRUPTED} turn.ended(interrupted shutdown) stop-checks forget`, "idle"],
  ],
  "idle, with receipts": [
    ["verify", "turn.started(verify) baseline judge ok", "running"],
    ["verify, commands given", "turn.started(verify) baseline judge ok", "running"],
    ["busy", "turn.started(self) baseline", "running"],
  ],
};
