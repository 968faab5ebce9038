import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import type { Feed, FeedPage, FeedQuery, NewDelivery } from "../../engine/ports.ts";
import { FEED_KEPT_MS, readCursor } from "../feed-cursor.ts";
import { feedPage, FeedRow } from "../outbox-rows.ts";
import { type SessionWatch, tailFeed } from "../session-watch.ts";
import { jsonText } from "../texts.ts";
import type { Database } from "./connect/database.ts";

/** Rows of the feed deleted in one transaction. */
const STEP_ROWS = 1_000;

/** $1 principal, $2 name, $3 session or null, $4 folder or null, $7 time before which items are left out. */
const MATCHING = `FROM feed f JOIN sessions s ON s.id = f.session_id
  WHERE f.principal = $1 AND f.name = $2 AND f.seq > e.start AND ($3::text IS NULL OR f.session_id = $3)
    AND ($4::text IS NULL OR s.cwd = $4)`;

const sql = {
  // In one statement, so that the ends are those of the moment at which the items are read.
  read: `SELECT e.feed_id AS "feedId", e.floor, e.head, i.*,
      $7::bigint > 0 AND EXISTS (SELECT 1 ${MATCHING} AND f.at < $7) AS "isSkipped"
    FROM feed_ends($5, $6) e LEFT JOIN LATERAL (SELECT f.seq, f.name, f.session_id AS "sessionId", f.event_id AS "eventId", f.at
      ${MATCHING} AND f.at >= $7 ORDER BY f.seq LIMIT $8) i ON true
    ORDER BY i.seq`,
  changes: "SELECT (SELECT max(seq) FROM feed) AS seq, (SELECT max(n) FROM deliveries) AS n",
  forget: `WITH last AS MATERIALIZED (SELECT max(seq) AS seq FROM
      (SELECT seq, at FROM feed ORDER BY seq LIMIT ${String(STEP_ROWS)}) oldest
      WHERE at < (SELECT now_ms()) - ${String(FEED_KEPT_MS)}),
    floor AS (UPDATE meta SET value = last.seq::text FROM last WHERE key = 'feed_floor' AND value::bigint < last.seq)
    DELETE FROM feed WHERE seq <= (SELECT seq FROM last) RETURNING seq`,
} as const;

const Changes = z.object({ seq: z.int().nullable(), n: z.int().nullable() });
const Found = z.object({
  feedId: z.string(),
  floor: z.int(),
  head: z.int(),
  isSkipped: z.boolean(),
  seq: z.int().nullable(),
});
const FoundRow = z.union([z.object({ ...Found.shape, ...FeedRow.shape }), Found]);

/** Columns of the text of a cursor, for the functions of the schema. Throws INVALID_ARGUMENT for a malformed cursor. */
export function cursorColumns(cursor: string | undefined): readonly [feedId: string | null, seq: number | null] {
  const { feedId, seq } = cursor === undefined ? {} : readCursor(cursor);
  return [feedId ?? null, seq ?? null];
}

export function filterColumns({ filter: { cwd, sessionId } }: Pick<FeedQuery, "filter">) {
  return [sessionId ?? null, cwd === undefined ? null : jsonText(cwd)] as const;
}

/** Columns of deliveries of several changes. Keeps the last of two with one id. */
export function deliveryColumns(changes: readonly (readonly NewDelivery[])[]) {
  const all = changes.flatMap((deliveries, index) => deliveries.map((each) => ({ ...each, change: index + 1 })));
  const found = [...new Map(all.map((each) => [JSON.stringify([each.target, each.messageId]), each])).values()];
  return [
    found.map(({ change }) => change),
    found.map(({ target }) => target),
    found.map(({ messageId }) => messageId),
    found.map(({ eventId }) => eventId),
    found.map(({ name }) => name),
    found.map(({ nodeId }) => nodeId ?? null),
    found.map(({ until }) => until ?? null),
  ] as const;
}

export type UseDatabase = <T>(work: (db: Database) => Promise<T>) => Promise<T>;

export function databaseFeed(use: UseDatabase, changes: SessionWatch): Feed {
  let asked: Promise<string> | undefined;
  const ask = async () => {
    await nextTurn();
    asked = undefined;
    return JSON.stringify(await use(async (db) => db.get(sql.changes, Changes, [], { patience: "reader" })));
  };
  // Asks once for all readers that are woken together: each open stream is a reader.
  const mark = async () => (asked ??= ask());
  return {
    read: async (query) => use(async (db) => readFeed(db, query)),
    changes: (signal) => tailFeed(changes, mark, signal),
  };
}

async function readFeed(db: Database, query: FeedQuery): Promise<FeedPage> {
  const { after, limit, name, principal, since = 0 } = query;
  const values = [jsonText(principal), name, ...filterColumns(query), ...cursorColumns(after), since, limit + 1];
  const found = await db.all(sql.read, FoundRow, values);
  const [ends] = found;
  if (!ends) throw new Error("the feed has no ends");
  return feedPage(query, { ...ends, rows: found.flatMap((row) => ("eventId" in row ? [FeedRow.parse(row)] : [])) });
}

/** Deletes items that are too old, a part at a time. */
export async function forgetItems(db: Database): Promise<void> {
  while ((await db.all(sql.forget, z.object({ seq: z.int() }))).length > 0);
}
