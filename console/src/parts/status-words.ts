import type { SessionStatus } from "../../../src/domain/session.ts";

export const STATUS_WORDS: Readonly<Record<SessionStatus, string>> = {
  running: "Running",
  waiting_permission: "Waiting",
  idle: "Idle",
  error: "Error",
  cancelled: "Cancelled",
  closed: "Closed",
};

/** In the order in which they are of interest. */
export const SESSION_STATUSES = ["running", "waiting_permission", "idle", "error", "cancelled", "closed"] as const;
