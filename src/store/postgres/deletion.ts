import { z } from "zod";
import type { PurgeQuery } from "../../engine/ports.ts";
import type { Database } from "./connect/database.ts";
import { LIST_LAG_MS } from "./connect/schema-leases.ts";

/** Rows deleted in one transaction of a few milliseconds. */
const STEP_ROWS = 1000;
/** Sessions deleted in one transaction. */
const STEP_SESSIONS = 100;

/** $1 before, $2 living nodes, $3 number, $4 ids or null. */
const ENDED = `s.status = sought.status AND s.listed_at < $1 AND s.updated_at < $1
  AND (s.owner IS NULL OR s.owner <> ALL($2::text[])) AND ($4::text[] IS NULL OR s.id = ANY($4))`;

/** Deletes rows of a session in `next`, at most `STEP_ROWS`; `order` finds the oldest along an index. */
const clear = (table: string, order: string): string => `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM ${table} WHERE session_id = (SELECT id FROM next) ORDER BY ${order} LIMIT ${String(STEP_ROWS)})) RETURNING 1`;

const sql = {
  // Oldest first. As in lists, the sessions sought are among those that may be as old as the last of as many by listed_at.
  ended: `SELECT found.id, found.rev FROM unnest($5::text[]) AS sought(status), LATERAL (
      SELECT s.id, s.rev, s.updated_at FROM sessions s,
        (SELECT max(listed_at) + ${String(LIST_LAG_MS)} AS edge FROM
          (SELECT s.listed_at FROM sessions s WHERE ${ENDED} ORDER BY s.listed_at LIMIT $3) oldest) e
      WHERE ${ENDED} AND s.listed_at <= e.edge ORDER BY s.updated_at, s.id LIMIT $3) found
    ORDER BY found.updated_at, found.id LIMIT $3`,
  remove: `WITH gone AS (DELETE FROM sessions s USING unnest($1::text[], $2::bigint[]) AS ended(id, rev)
      WHERE s.id = ended.id AND s.rev = ended.rev RETURNING s.id),
    described AS (DELETE FROM descriptions WHERE session_id IN (SELECT id FROM gone)),
    transcripts AS (DELETE FROM given_transcripts WHERE session_id IN (SELECT id FROM gone)),
    manifests AS (DELETE FROM transcript_manifests WHERE session_id IN (SELECT id FROM gone)),
    noted AS (INSERT INTO deleted_sessions(id) SELECT id FROM gone ON CONFLICT DO NOTHING)
    SELECT id FROM gone`,
  // Leaves out a session that another server is clearing.
  clear: `WITH next AS MATERIALIZED (SELECT id FROM deleted_sessions LIMIT 1 FOR UPDATE SKIP LOCKED),
    cleared_events AS (${clear("events", "id")}),
    cleared_commands AS (${clear("commands", "n")}),
    cleared_parts AS (${clear("transcript_parts", "start")}),
    done AS (DELETE FROM deleted_sessions WHERE id = (SELECT id FROM next)
      AND (SELECT count(*) FROM cleared_events) < ${String(STEP_ROWS)}
      AND (SELECT count(*) FROM cleared_commands) < ${String(STEP_ROWS)}
      AND (SELECT count(*) FROM cleared_parts) < ${String(STEP_ROWS)})
    SELECT id FROM next`,
  size: "SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM sessions",
} as const;

const Ended = z.object({ id: z.string(), rev: z.int() });
const Id = z.object({ id: z.string() });

export interface EndedQuery extends Readonly<PurgeQuery> {
  /** Living nodes; their sessions stay. */
  readonly living: readonly string[];
}

/** Deletes ended sessions, the oldest first, unless they change meanwhile. Returns their ids. */
export async function deleteEnded(db: Database, query: EndedQuery): Promise<string[]> {
  const { before, ids, limit, living, statuses } = query;
  const values = [before, living, limit, ids ?? null, [...new Set(statuses)]];
  const found = await db.all(sql.ended, Ended, values);
  const deleted: string[] = [];
  for (let from = 0; from < found.length; from += STEP_SESSIONS) {
    const step = found.slice(from, from + STEP_SESSIONS);
    const gone = await db.all(sql.remove, Id, [step.map(({ id }) => id), step.map(({ rev }) => rev)]);
    deleted.push(...gone.map(({ id }) => id));
  }
  return deleted;
}

/** Clears the logs of deleted sessions, also of an earlier purge that was cut short, a part at a time. */
export async function clearDeleted(db: Database): Promise<void> {
  while ((await db.all(sql.clear, Id)).length > 0);
}

/** Returns the size of the stored texts, bytes. */
export async function storedBytes(db: Database): Promise<number> {
  return (await db.get(sql.size, z.object({ bytes: z.int() })))?.bytes ?? 0;
}
