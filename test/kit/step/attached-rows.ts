import type { SessionStatus } from "../../../src/domain/session.ts";
import type { InputName, StateName } from "./cases.ts";

const CHANGES = "notice reattach";
const LOSES = "process.exited turn.ended(lost)";
const LINES_LOST = `notice ${LOSES} kill end-leftover`;

/** Rows of `TABLE` (rows.ts): a session whose owner died; its process is in a shim, or was not recorded. */
export const ATTACHED_ROWS: Partial<Record<StateName, [InputName, told: string, SessionStatus][]>> = {
  "started again": [
    ["started", "process.started", "running"],
    ["interrupt", "interrupt ok", "running"],
    ["never came up", "process.exited turn.ended(failed start_failed)", "error"],
    ["recovered", `${LOSES} end-leftover`, "error"],
    ["recovered, may start", "notice end-leftover start push", "running"],
  ],
  "waiting, ends with its client": [["recovered, may start", `${LOSES} end-leftover`, "error"]],
  "lost with a steered prompt, run on": [["recovered, may start", "notice end-leftover start", "running"]],
  "in a shim": [
    ["attached", `${CHANGES} push`, "running"],
    ["recovered", `${LOSES} end-leftover`, "error"],
    ["process attached", "", "running"],
    ["process attached, lines lost", LINES_LOST, "error"],
    ["background begins", "background.changed", "running"],
    ["background ends", "", "running"],
  ],
  "in a shim, not up": [
    ["attached", `${CHANGES} push`, "running"],
    ["process attached", "", "running"],
    ["ready", "", "running"],
  ],
  "in a shim, asking": [
    ["attached", `${CHANGES} push`, "waiting_permission"],
    ["asked again", "", "waiting_permission"],
    ["withdrawn", "permission.answered(deny withdrawn)", "running"],
    [
      "process attached, lines lost",
      "notice process.exited permission.answered(deny withdrawn) turn.ended(lost) kill end-leftover",
      "error",
    ],
  ],
  "in a shim, answered": [
    ["attached", `${CHANGES} push`, "running"],
    ["asked again", "answer-again", "running"],
    ["allow", "PERMISSION_REQUEST_NOT_FOUND", "running"],
  ],
  "in a shim, steered, a prompt waits": [
    ["attached", "prompt.dropped(client_gone) notice reattach push push", "running"],
  ],
  "in a shim, interrupted": [
    ["attached", `${CHANGES} interrupt`, "running"],
    ["process attached, lines lost", "notice process.exited turn.ended(interrupted) kill end-leftover", "idle"],
  ],
  "in a shim, killed": [["attached", `${CHANGES} kill`, "running"]],
  "in a shim, result seen": [
    ["attached", CHANGES, "running"],
    ["idle", "turn.ended(done)", "idle"],
  ],
  "in a shim, agent at work": [
    ["attached", CHANGES, "running"],
    ["background ends", "background.changed", "running"],
    [
      "process attached, lines lost",
      "notice process.exited background.changed turn.ended(lost) kill end-leftover",
      "error",
    ],
  ],
  "in a shim, idle": [
    ["attached", CHANGES, "idle"],
    ["process attached, lines lost", "notice process.exited kill end-leftover", "idle"],
    ["busy", "turn.started(self)", "running"],
  ],
  "in a shim, prompt waits for the exit": [
    ["attached", `${CHANGES} stop`, "running"],
    ["ended", "process.exited(expected) start push", "running"],
  ],
  "in a shim, ends with its client": [["attached", `${LOSES} end-leftover`, "error"]],
  "in a shim, cancelled": [
    ["attached", "reattach stop", "cancelled"],
    ["process attached, lines lost", "", "cancelled"],
    ["killed", "process.exited(expected)", "cancelled"],
  ],
  "in a shim, run on": [["attached", CHANGES, "running"]],
  "in a shim, run on, the prompt was missing": [["attached", `${CHANGES} push`, "running"]],
  "in a shim, kept nowhere": [
    ["attached", `${CHANGES} push`, "running"],
    [
      "process attached, lines lost",
      "notice process.exited turn.ended(lost) session.closed(expired) kill end-leftover",
      "closed",
    ],
  ],
};
