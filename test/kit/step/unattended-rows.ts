import type { SessionStatus } from "../../../src/domain/session.ts";
import type { InputName, StateName } from "./cases.ts";

/** Rows of `TABLE` (rows.ts): a session on a server that outlives its clients. */
export const UNATTENDED_ROWS: Partial<Record<StateName, [InputName, told: string, SessionStatus][]>> = {
  "no client there, unattended": [
    ["asked", "permission.asked notice", "waiting_permission"],
    ["spent too much", "notice interrupt", "running"],
    ["attend", "ok", "running"],
    ["tick when due", "notice", "running"],
  ],
  "no client there, asking": [
    ["tick when due", "notice", "waiting_permission"],
    ["allow, by the user", "permission.answered(allow user) answer:allow ok", "running"],
  ],
  "unattended for too long, prompt waits": [
    ["tool use", "message interrupt", "running"],
    ["message", "message", "running"],
    ["attend", "ok", "running"],
  ],
};
