import type { SessionDetail } from "../../../src/console/wire.ts";
import { count } from "../parts/format.ts";
import { approverName } from "../state/answer-source.ts";

/** State of a session, in words. */

/** Reason why the session waits: approvers or place in the queue; "" if the session does not wait. */
export function waitText({ status, waitingBefore, waitsFor }: SessionDetail): string {
  if (status === "waiting_permission" && waitsFor.length > 0) return `for ${waitsFor.map(approverName).join(" and ")}`;
  if (waitingBefore === undefined) return "";
  return waitingBefore === 0 ? "queued, next to start" : `queued, ${count(waitingBefore, "session")} ahead`;
}

export function isOver({ status }: SessionDetail): boolean {
  return status === "cancelled" || status === "closed";
}

export function isAtWork({ status }: SessionDetail): boolean {
  return status === "running" || status === "waiting_permission";
}
