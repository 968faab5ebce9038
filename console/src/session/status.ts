import type { SessionDetail } from "../../../src/console/wire.ts";
import { counted } from "../parts/amounts.ts";

/** What a session is at, in words. */

const WORDS = {
  running: "Running",
  waiting_permission: "Waits for an answer",
  idle: "Idle",
  error: "Failed",
  cancelled: "Cancelled",
  closed: "Closed",
} as const;

export const TONES = {
  running: "accent",
  waiting_permission: "warn",
  idle: "soft",
  error: "bad",
  cancelled: "soft",
  closed: "soft",
} as const;

const WHOM = {
  user: "the user at the client",
  console: "this console",
  webhook: "a webhook",
  caller: "the calling model",
};

export function wordsOfStatus({ lastOutcome, status, turns, waitingBefore, waitsFor }: SessionDetail): string {
  if (status === "waiting_permission" && waitsFor.length > 0)
    return `Waits for ${waitsFor.map((rung) => WHOM[rung]).join(" and ")}`;
  if (status === "running" && waitingBefore !== undefined) {
    const before = waitingBefore === 0 ? "next in line" : `${counted(waitingBefore, "session")} before it`;
    return `Waits for a place, ${before}`;
  }
  if (status === "error" && lastOutcome === "lost") return "Lost";
  return status === "idle" && turns === 0 ? "New" : WORDS[status];
}

export function isOver({ status }: SessionDetail): boolean {
  return status === "cancelled" || status === "closed";
}

export function isAtWork({ status }: SessionDetail): boolean {
  return status === "running" || status === "waiting_permission";
}
