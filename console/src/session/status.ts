import type { SessionDetail } from "../../../src/console/wire.ts";
import { approverName } from "../state/answer-source.ts";

/** State of a session, in words. */

/** Approvers for whom the session waits; "" if it waits for none. */
export function approversText({ status, waitsFor }: SessionDetail): string {
  return status === "waiting_permission" && waitsFor.length > 0
    ? `for ${waitsFor.map(approverName).join(" and ")}`
    : "";
}

export function isOver({ status }: SessionDetail): boolean {
  return status === "cancelled" || status === "closed";
}

export function isAtWork({ status }: SessionDetail): boolean {
  return status === "running" || status === "waiting_permission";
}
