import { z } from "zod";
import type { FeedEntry } from "../../domain/feed.ts";
import type { FeedPage, FeedQuery, NewDelivery } from "../../engine/ports.ts";
import { DELIVERY_MS, entryColumns, FEED_KEPT_MS, type FeedEnds, startAfter } from "../feed-cursor.ts";
import { feedPage, FeedRow } from "../outbox-rows.ts";
import { jsonText } from "../texts.ts";
import type { Connection } from "./connect/connection.ts";

/** Items that match a subscription: parameters `$principal`, `$name`, `$sessionId`, `$cwd`, `$after` and `$since`. */
export const MATCHING = `FROM feed f JOIN sessions s ON s.id = f.session_id
  WHERE f.principal = $principal AND f.name = $name AND f.seq > $after AND f.at >= $since
    AND ($sessionId IS NULL OR f.session_id = $sessionId) AND ($cwd IS NULL OR s.cwd = $cwd)`;

/** Rows of the feed deleted in one transaction. */
const STEP_ROWS = 1_000;

const sql = {
  ends: `SELECT (SELECT value FROM meta WHERE key = 'feed') AS "feedId",
    (SELECT value FROM meta WHERE key = 'feed_floor') AS floor, (SELECT max(seq) FROM feed) AS head`,
  insert: `INSERT INTO feed(principal, name, session_id, event_id, at)
    SELECT principal, $name, $sessionId, $eventId, $at FROM sessions WHERE id = $sessionId RETURNING seq`,
  fanOut: `INSERT INTO deliveries(target, message_id, session_id, event_id, name, seq, until)
    SELECT u.id, $messageId, $sessionId, $eventId, $name, $seq, $at + ${String(DELIVERY_MS)}
    FROM sessions s JOIN subscriptions u ON u.principal = s.principal AND u.name = $name
    WHERE s.id = $sessionId AND u.expires_at > $at AND coalesce(u.session_id, s.id) = s.id AND coalesce(u.cwd, s.cwd) = s.cwd
    ON CONFLICT DO NOTHING`,
  // A changed delivery gets the highest `n`, so that its node is woken. It is due at once at a new node: the former is dead.
  add: `INSERT INTO deliveries(target, message_id, session_id, event_id, name, node, until)
    VALUES($target, $messageId, $sessionId, $eventId, $name, $nodeId, $until)
    ON CONFLICT(target, message_id) DO UPDATE SET node = excluded.node, until = excluded.until,
      due_at = CASE WHEN node IS excluded.node THEN due_at ELSE excluded.due_at END,
      n = 1 + max((SELECT max(n) FROM deliveries), (SELECT seq FROM sqlite_sequence WHERE name = 'deliveries'))
    WHERE node IS NOT excluded.node OR until <> excluded.until`,
  read: `SELECT f.seq, f.name, f.session_id AS "sessionId", f.event_id AS "eventId", f.at ${MATCHING}
    ORDER BY f.seq LIMIT $limit`,
  isSkipped: `SELECT 1 AS found ${MATCHING.replace("f.at >= $since", "f.at < $since")} LIMIT 1`,
  changes: "SELECT (SELECT max(seq) FROM feed) AS seq, (SELECT max(n) FROM deliveries) AS n",
  floor: `UPDATE meta SET value = coalesce((SELECT max(seq) FROM (SELECT seq, at FROM feed ORDER BY seq
    LIMIT ${String(STEP_ROWS)}) WHERE at < $before), value) WHERE key = 'feed_floor'`,
  forget: "DELETE FROM feed WHERE seq <= CAST((SELECT value FROM meta WHERE key = 'feed_floor') AS INTEGER)",
} as const;

const Ends = z.object({ feedId: z.string(), floor: z.coerce.number(), head: z.number().nullable() });

export function readEnds(db: Connection): FeedEnds {
  const { feedId, floor, head } = Ends.parse(db.get(sql.ends, Ends));
  return { feedId, floor, head: head ?? floor };
}

/** Adds entries to the feed, and a delivery for each subscription that they match, in the present transaction. */
export function addEntries(db: Connection, sessionId: string, entries: readonly FeedEntry[], at: number): void {
  for (const entry of entries) {
    const { messageId, ...columns } = entryColumns(sessionId, entry);
    const added = db.get(sql.insert, z.object({ seq: z.number() }), { ...columns, at });
    if (added) db.run(sql.fanOut, { ...columns, messageId, at, seq: added.seq });
  }
}

export function addDeliveries(db: Connection, sessionId: string, deliveries: readonly NewDelivery[], at: number): void {
  for (const { nodeId, until = at + DELIVERY_MS, ...delivery } of deliveries) {
    db.run(sql.add, { ...delivery, sessionId, nodeId: nodeId ?? null, until });
  }
}

export function filterValues({ filter: { cwd, sessionId } }: Pick<FeedQuery, "filter">) {
  return { sessionId: sessionId ?? null, cwd: cwd === undefined ? null : jsonText(cwd) };
}

export function readFeed(db: Connection, query: FeedQuery): FeedPage {
  const { limit, name, since = 0 } = query;
  const ends = readEnds(db);
  const { seq: after } = startAfter(query.after, ends);
  const values = { principal: jsonText(query.principal), name, after, since, ...filterValues(query) };
  const rows = db.all(sql.read, FeedRow, { ...values, limit: limit + 1 });
  const isSkipped = since > 0 && db.get(sql.isSkipped, z.object({ found: z.number() }), values) !== undefined;
  return feedPage(query, { ...ends, rows, isSkipped });
}

const Changes = z.object({ seq: z.number().nullable(), n: z.number().nullable() });

/** Returns a text that differs after each addition to the feed and the outbox. */
export function changeMark(db: Connection): string {
  return JSON.stringify(db.get(sql.changes, Changes));
}

/** Deletes a part of the items that are too old. Returns false if none are left. */
export function forgetItems(db: Connection, now: number): boolean {
  db.run(sql.floor, { before: now - FEED_KEPT_MS });
  return db.run(sql.forget) > 0;
}
