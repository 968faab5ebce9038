import { z } from "zod";
import type { EventType, StoredEvent } from "../../domain/event.ts";
import { type Append, FencedError, type Lease } from "../../engine/ports.ts";
import type { Connection } from "./connect/connection.ts";
import { addDeliveries, addEntries } from "./feed.ts";
import { applyChanges } from "./ledger.ts";
import { EventRow } from "../rows.ts";
import { appendTexts, disagreement } from "../texts.ts";

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

/** Makes the texts now, although the returned function runs later. The function throws `FencedError` and `ConflictError`. */
export function prepareAppend({ epoch, nodeId, sessionId }: Lease, change: Append): (db: Connection) => void {
  const { events, feed, head, prompt, transcriptId } = appendTexts(change);
  const { at, deliveries = [] } = change;
  const advance = { id: sessionId, owner: nodeId, epoch, ...head };
  return (db) => {
    if (db.run(sql.advance, advance) === 0) throw explainRefusal(db, advance);
    applyChanges(db, change.ledger ?? [], at);
    if (transcriptId !== undefined) db.run(sql.giveTranscript, { transcriptId, sessionId });
    for (const event of events) db.run(sql.insert, { sessionId, at, ...event });
    if (prompt !== undefined) db.run(sql.firstPrompt, { id: sessionId, prompt });
    addEntries(db, sessionId, feed, at);
    addDeliveries(db, sessionId, deliveries, at);
  };
}

const Head = z.object({ owner: z.string().nullable(), epoch: z.int(), last_event: z.int() });

/** Returns the reason why a session could not be advanced. */
function explainRefusal(db: Connection, to: { id: string; owner: string; epoch: number; before: number }): Error {
  const head = db.get(sql.head, Head, { id: to.id });
  if (!head) return new FencedError(`session ${to.id} is gone`);
  if (head.owner !== to.owner || head.epoch !== to.epoch)
    return new FencedError(`session ${to.id} is no longer owned by ${to.owner}`);
  return disagreement(to.id, head.last_event, to.before);
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
