import type { SessionStatus } from "../../../src/domain/session.ts";
import type { InputName, StateName } from "./cases.ts";

/** Rows of `TABLE` (rows.ts): closed sessions. */

const UNKNOWN_REQUEST = "PERMISSION_REQUEST_NOT_FOUND";

export const CLOSED_ROWS: Partial<Record<StateName, [InputName, told: string, SessionStatus][]>> = {
  cancelled: [
    ["prompt", "CANCELLED", "cancelled"],
    ["prompt, known key", "CANCELLED", "cancelled"],
    ["allow", UNKNOWN_REQUEST, "cancelled"],
    ["interrupt", "ok", "cancelled"],
    ["close", "ok", "cancelled"],
    ["message", "", "cancelled"],
    ["asked", "", "cancelled"],
    ["busy", "", "cancelled"],
    ["killed", "process.exited(expected)", "cancelled"],
  ],
  "cancelled, gone": [["prompt", "CANCELLED", "cancelled"]],
  "cancelled, shell at work": [["ended", "process.exited(expected)", "cancelled"]],
  closed: [
    ["suspend", "ok", "closed"],
    ["prompt", "CANCELLED", "closed"],
    ["cancel", "ok", "closed"],
    ["tick", "", "closed"],
  ],
};
