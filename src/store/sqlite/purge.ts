import { z } from "zod";
import type { PurgeQuery } from "../../engine/ports.ts";
import { newestFirst } from "../listing.ts";
import type { Connection } from "./connect/connection.ts";

/** Rows deleted, and pages given back to the file system, in one transaction of a few milliseconds. */
const [STEP_ROWS, STEP_PAGES] = [1000, 500];
/** Cost of clearing a session besides its rows, in rows. */
const SESSION_ROWS = 10;

const ended = (which: string): string => `SELECT id, rev, updated_at AS "updatedAt" FROM sessions
    WHERE ${which} status = $status AND updated_at < $before
      AND (owner IS NULL OR owner NOT IN (SELECT value FROM json_each($living)))
    ORDER BY updated_at, id LIMIT $limit`;

const sql = {
  ended: ended(""),
  endedOfThese: ended("id IN (SELECT value FROM json_each($ids)) AND"),
  remove: "DELETE FROM sessions WHERE id = $id AND rev = $rev",
  removeDescription: "DELETE FROM descriptions WHERE session_id = $id",
  removeTranscripts: "DELETE FROM given_transcripts WHERE session_id = $id",
  note: "INSERT INTO deleted_sessions(id) VALUES($id) ON CONFLICT DO NOTHING",
  next: "SELECT id FROM deleted_sessions LIMIT 1",
  clearEvents: `DELETE FROM events WHERE session_id = $id
    AND id < $limit + (SELECT min(id) FROM events WHERE session_id = $id)`,
  clearCommands: "DELETE FROM commands WHERE n IN (SELECT n FROM commands WHERE session_id = $id LIMIT $limit)",
  cleared: "DELETE FROM deleted_sessions WHERE id = $id",
  free: "PRAGMA freelist_count",
  used: `SELECT (page_count - freelist_count) * page_size AS bytes
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
} as const;

const Ended = z.object({
  id: z.string(),
  // Compared only for equality, so that a session with a damaged value can be deleted.
  rev: z.union([z.number(), z.string()]),
  updatedAt: z.int().catch(0),
});
export type Ended = z.infer<typeof Ended>;

export interface EndedQuery extends Readonly<PurgeQuery> {
  /** Living nodes; their sessions stay. */
  readonly living: readonly string[];
}

/** Returns ended sessions, oldest first. */
export function endedSessions(db: Connection, { before, ids, limit, living, statuses }: EndedQuery): Ended[] {
  const [query, these] = ids ? [sql.endedOfThese, { ids: JSON.stringify(ids) }] : [sql.ended, {}];
  const values = { before, limit, living: JSON.stringify(living), ...these };
  const pages = [...new Set(statuses)].map((status) => db.all(query, Ended, { ...values, status }));
  const oldestFirst = pages.flat().toSorted((a, b) => newestFirst(b, a));
  return oldestFirst.slice(0, limit);
}

/** Deletes a session, unless changed since `endedSessions`. The session is gone at once; `clearStep` clears the log later. */
export function deleteSession(db: Connection, { id, rev }: Ended): boolean {
  if (db.run(sql.remove, { id, rev }) === 0) return false;
  db.run(sql.removeDescription, { id });
  db.run(sql.removeTranscripts, { id });
  db.run(sql.note, { id });
  return true;
}

/**
 * Clears a part of the rows of deleted sessions. Returns false if none are left, also of an earlier purge that was cut short.
 */
export function clearStep(db: Connection): boolean {
  for (let rest = STEP_ROWS; rest > 0; rest -= SESSION_ROWS) {
    const next = db.get(sql.next, z.object({ id: z.string() }));
    if (!next) return false;
    rest -= db.run(sql.clearEvents, { id: next.id, limit: rest });
    if (rest > 0) rest -= db.run(sql.clearCommands, { id: next.id, limit: rest });
    if (rest > 0) db.run(sql.cleared, { id: next.id });
  }
  return true;
}

/** Gives a part of the free pages back. Returns false if there are none. */
export function shrinkStep(db: Connection): boolean {
  const free = db.get(sql.free, z.object({ freelist_count: z.int() }))?.freelist_count ?? 0;
  if (free > 0) db.execute(`PRAGMA incremental_vacuum(${String(STEP_PAGES)})`);
  return free > 0;
}

/** Returns the size of the stored data in bytes, without free pages. */
export function usedBytes(db: Connection): number {
  return db.get(sql.used, z.object({ bytes: z.int() }))?.bytes ?? 0;
}
