import type { SessionStatus } from "../../../src/domain/session.ts";

export const STATUS_WORDS: Readonly<Record<SessionStatus, string>> = {
  running: "Running",
  waiting_permission: "Waiting",
  idle: "Idle",
  error: "Error",
  cancelled: "Cancelled",
  closed: "Closed",
};

/** Sorted by interest to the user. */
export const SESSION_STATUSES = ["running", "waiting_permission", "idle", "error", "cancelled", "closed"] as const;
