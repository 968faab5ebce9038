import { windowName, type PlanLimit } from "./plan.ts";
import { waitingOf, type SessionState } from "./session.ts";
import type { WaitingKind } from "./waiting.ts";

/** Words and wire fields for work that stands still: the wait of a session, and the limit that has ended a turn. */

/** Returns the field `waiting` of an answer; empty for a session that does not wait. */
export function waitingField(state: SessionState): {
  waiting?: { kind: WaitingKind; window?: string; until?: string };
} {
  const waiting = waitingOf(state);
  if (!waiting) return {};
  const { until, ...rest } = waiting;
  return { waiting: { ...rest, ...(until !== undefined && { until: isoTime(until) }) } };
}

/** Describes the wait of a session in a sentence for people; "" for a session that does not wait. */
export function waitingText(state: SessionState): string {
  const waiting = waitingOf(state);
  if (!waiting) return "";
  const { kind, until, window } = waiting;
  const name = window === undefined ? "plan" : windowName(window);
  const end = until === undefined ? "" : `, until ${isoTime(until)}`;
  const sentences: Readonly<Record<WaitingKind, string>> = {
    usage_limit: `waits at the limit of the ${name}${end}`,
    plan_reserve: `waits, because the rest of the ${name} is reserved (planReserve)${end}`,
    budget: `waits, because the money of the day is spent or reserved${end}`,
    environment: `waits for a client with the configuration folder and the account of the session${end}`,
    workspace: "waits for a node that has the folder of the session",
    slot: "waits for a slot (--max-live)",
  };
  return sentences[kind];
}

/** Returns the fields of the limit that has ended a turn. */
export function limitFields(limit: PlanLimit | undefined): { window?: string; resetsAt?: string } {
  if (!limit) return {};
  const { resetsAt, window } = limit;
  return { window, ...(resetsAt !== undefined && { resetsAt: isoTime(resetsAt) }) };
}

/** Latest time that a `Date` can hold, ms since the epoch. A reset comes from outside, and may be anything. */
const LATEST = 8.64e15;

function isoTime(at: number): string {
  return new Date(Math.min(Math.max(at, 0), LATEST)).toISOString();
}
