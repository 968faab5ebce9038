import type { EventType } from "../domain/event.ts";
import { feedEntries } from "../domain/feed.ts";
import { isAtWork, type SessionState, statusOf } from "../domain/session.ts";
import type { Append, NewSession } from "../engine/ports.ts";
import { EVENT, OPTIONS, POLICY, STATE } from "./format.ts";

/** Makes the texts that a store writes, alike for all storage engines. */

/** Converts text for the search. Replaces NUL, which neither every driver nor every database takes. */
export function searchText(text: string): string {
  return text.toLowerCase().replaceAll("\0", "\ufffd");
}

/**
 * Converts text written by people to JSON, which escapes NUL and lone surrogates: one SQLite driver cuts a string at NUL,
 * PostgreSQL refuses NUL, and UTF-8 has no lone surrogates.
 */
export function jsonText(text: string): string {
  return JSON.stringify(text);
}

interface StateColumns {
  readonly state: string;
  readonly status: string;
  readonly atWork: number;
}

/** Returns the columns that follow from a state. Throws for a state without JSON form, before the transaction begins. */
function stateColumns(state: SessionState): StateColumns {
  return { state: STATE.write(state), status: statusOf(state), atWork: isAtWork(state) ? 1 : 0 };
}

/** Columns of a session at its creation. */
export function newSessionTexts({ idempotencyKey: key, policy, principal, spec, state, ...session }: NewSession) {
  const { at, id } = session;
  if (state.lastEventId !== 0) throw new Error(`session ${id}: state and log disagree: the log is empty`);
  return {
    columns: {
      id,
      principal: jsonText(principal),
      key: key === undefined ? null : jsonText(key),
      cwd: jsonText(spec.cwd),
      at,
      ...stateColumns(state),
    },
    description: {
      id,
      spec: OPTIONS.write(spec),
      policy: policy ? POLICY.write(policy) : null,
      soughtCwd: searchText(spec.cwd),
    },
  };
}

/** Texts of an append. `before` is the last event that the log must have for the append to be stored. */
export function appendTexts({ at, events, state }: Append) {
  const before = state.lastEventId - events.length;
  const prompt = events.find((event) => event.type === "prompt.queued")?.data.text;
  return {
    head: { at, before, last: state.lastEventId, ...stateColumns(state) },
    events: events.map((event, index) => ({ id: before + 1 + index, type: event.type, event: EVENT.write(event) })),
    prompt: prompt === undefined ? undefined : searchText(prompt),
    transcriptId: state.transcriptId,
    feed: feedEntries(events, state),
  };
}

/**
 * Urgency of a write:
 * - `barrier`: on the disk before the write is acknowledged, with all earlier writes.
 * - `immediate`: written at once; survives the end of the process but not of the machine.
 * - `grouped`: like `immediate`, but may wait a little, to share a transaction with later writes.
 */
export type Urgency = "barrier" | "immediate" | "grouped";

/**
 * Types of events that a crash of the whole machine may take back. All other events are acted upon as soon as they are stored.
 */
const RELAXED: ReadonlySet<EventType> = new Set(["message", "notice", "background.changed", "turn.baseline"]);

/**
 * Chooses the urgency. A change of the state without events that only affects a reply (a request was shown, a process may be
 * suspended) is not synced to disk at once: only a crash of the whole machine could undo the change, and also ends the turn,
 * its requests and the process; queued prompts are held after a loss in any case. An interrupt has no event either, but must be
 * durable, because a lost turn may be run again (`acted`).
 */
export function urgencyOf({ acted = false, events }: Pick<Append, "acted" | "events">): Urgency {
  if (acted || events.some(({ type }) => !RELAXED.has(type))) return "barrier";
  return events.length > 0 ? "grouped" : "immediate";
}

/** Returns the error for an append that the log's last event refuses. */
export function disagreement(sessionId: string, last: number, before: number): Error {
  const ids = `the log ends with event ${String(last)}, the change begins after ${String(before)}`;
  return new Error(`session ${sessionId}: state and log disagree: ${ids}`);
}
