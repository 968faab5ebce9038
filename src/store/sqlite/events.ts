import { z } from "zod";
import type { EventType, StoredEvent } from "../../domain/event.ts";
import { type Append, FencedError, type Lease } from "../../engine/ports.ts";
import { EVENT } from "../format.ts";
import type { Connection } from "./connect/connection.ts";
import { applyChanges } from "./ledger.ts";
import { EventRow } from "./rows.ts";
import { searchText, stateColumns } from "./sessions.ts";
import type { Urgency } from "./writer.ts";

const sql = {
  advance: `UPDATE sessions SET state = $state, status = $status, at_work = $atWork, last_event = $last,
      updated_at = $at, rev = rev + 1
    WHERE id = $id AND owner = $owner AND epoch = $epoch AND last_event = $before`,
  head: "SELECT owner, epoch, last_event FROM sessions WHERE id = $id",
  insert: "INSERT INTO events(session_id, id, at, type, event) VALUES($sessionId, $id, $at, $type, $event)",
  giveTranscript:
    "INSERT INTO given_transcripts(id, session_id) VALUES($transcriptId, $sessionId) ON CONFLICT DO NOTHING",
  firstPrompt: "UPDATE descriptions SET sought_prompt = $prompt WHERE session_id = $id AND sought_prompt IS NULL",
  read: `SELECT id, at, type, event FROM events WHERE session_id = $sessionId AND id >= $from ORDER BY id LIMIT $limit`,
  readTypes: `SELECT id, at, type, event FROM events
    WHERE session_id = $sessionId AND id >= $from AND type IN (SELECT value FROM json_each($types)) ORDER BY id LIMIT $limit`,
} as const;

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

/** Makes the texts now, although the returned function runs later. The function throws `FencedError` and `ConflictError`. */
export function prepareAppend(
  { epoch, nodeId, sessionId }: Lease,
  { at, events, ledger = [], state }: Append,
): (db: Connection) => void {
  const before = state.lastEventId - events.length;
  const head = { id: sessionId, owner: nodeId, epoch, at, before, last: state.lastEventId, ...stateColumns(state) };
  const rows = events.map((event, index) => {
    return { sessionId, id: before + 1 + index, at, type: event.type, event: EVENT.write(event) };
  });
  const prompt = events.find((event) => event.type === "prompt.queued")?.data.text;
  const { transcriptId } = state;
  return (db) => {
    if (db.run(sql.advance, head) === 0) throw explainRefusal(db, head);
    applyChanges(db, ledger, at);
    if (transcriptId !== undefined) db.run(sql.giveTranscript, { transcriptId, sessionId });
    for (const row of rows) db.run(sql.insert, row);
    if (prompt !== undefined) db.run(sql.firstPrompt, { id: sessionId, prompt: searchText(prompt) });
  };
}

const Head = z.object({ owner: z.string().nullable(), epoch: z.int(), last_event: z.int() });

/** Returns the reason why a session could not be advanced. */
function explainRefusal(db: Connection, to: { id: string; owner: string; epoch: number; before: number }): Error {
  const head = db.get(sql.head, Head, { id: to.id });
  if (!head) return new FencedError(`session ${to.id} is gone`);
  if (head.owner !== to.owner || head.epoch !== to.epoch)
    return new FencedError(`session ${to.id} is no longer owned by ${to.owner}`);
  const ids = `the log ends with event ${String(head.last_event)}, the change begins after ${String(to.before)}`;
  return new Error(`session ${to.id}: state and log disagree: ${ids}`);
}

export function readEvents(db: Connection, sessionId: string, from: number, limit: number): StoredEvent[] {
  return db.all(sql.read, EventRow, { sessionId, from: Math.max(from, 1), limit });
}

/** Reads events by type. No index helps: goes through all rows of the session, but reads the content of matching rows only. */
export function readTypes(
  db: Connection,
  sessionId: string,
  types: readonly EventType[],
  page: { readonly from: number; readonly limit: number },
): StoredEvent[] {
  const { from, limit } = page;
  return db.all(sql.readTypes, EventRow, { sessionId, from: Math.max(from, 1), limit, types: JSON.stringify(types) });
}
