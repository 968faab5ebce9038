import { z } from "zod";
import type { Delivery, DeliveryResult, Outbox, Subscription } from "../../engine/ports.ts";
import { StoreError } from "../errors.ts";
import { writeCursor } from "../feed-cursor.ts";
import { DeliveryRow, deliveriesOf, SubscriptionRow } from "../outbox-rows.ts";
import { jsonText } from "../texts.ts";
import { type Database, VERSION } from "./connect/database.ts";
import { cursorColumns, deliveryColumns, filterColumns, type UseDatabase } from "./feed-table.ts";

const NOW = "(SELECT now_ms())";
const LIVING = `expires_at > ${NOW}`;
/** $1 targets of the operator, $2 this node, $3 true for all subscriptions. */
const MAY_TAKE = `until > ${NOW} AND (node IS NULL OR node = $2)
  AND (target = ANY($1::text[]) OR $3 AND target IN (SELECT id FROM subscriptions WHERE ${LIVING}))`;
const FEED_ID = `(SELECT value FROM meta WHERE key = 'feed') AS "feedId"`;
const NONE = "ARRAY[]::bigint[]";

const sql = {
  find: `SELECT id, principal, name, session_id AS "sessionId", cwd, url, secret, former, former_until AS "formerUntil",
    expires_at AS "expiresAt", delivered_at AS "deliveredAt", failed_since AS "failedSince", fault
    FROM subscriptions WHERE id = $1 AND ${LIVING}`,
  isVerified: `SELECT EXISTS (SELECT 1 FROM subscriptions WHERE principal = $1 AND url = $2 AND ${LIVING}) AS found`,
  subscribe: `SELECT reached, truncated FROM subscribe($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
  settled: `SELECT feed_id AS "feedId",
    coalesce((SELECT min(seq) - 1 FROM deliveries WHERE target = $1 AND until > ${NOW}), head) AS seq
    FROM feed_ends(NULL, NULL)`,
  unsubscribe: `WITH gone AS (DELETE FROM deliveries WHERE target = $1),
    removed AS (DELETE FROM subscriptions WHERE id = $1 RETURNING expires_at)
    SELECT EXISTS (SELECT 1 FROM removed WHERE ${LIVING}) AS found`,
  add: `SELECT add_to_feed(ARRAY[1], $1, ${NONE}, ${NONE}::integer[], ${NONE}::text[], ${NONE}, $2, $3, $4, $5, $6, $7, $8)`,
  withdraw: "DELETE FROM deliveries WHERE target = $1 AND message_id = $2",
  take: `WITH due AS MATERIALIZED (SELECT n FROM deliveries WHERE due_at <= ${NOW} AND ${MAY_TAKE}
      AND target <> ALL($6::text[]) AND NOT EXISTS (SELECT 1 FROM subscriptions u
        WHERE u.id = target AND u.principal = ANY($7::text[])) ORDER BY n LIMIT $4 FOR UPDATE SKIP LOCKED),
    taken AS (UPDATE deliveries d SET due_at = ${NOW} + $5, attempts = attempts + 1 FROM due WHERE d.n = due.n RETURNING d.*)
    SELECT n, target, message_id AS "messageId", session_id AS "sessionId", event_id AS "eventId", name, seq,
      attempts - 1 AS attempts, until, ${FEED_ID},
      (SELECT principal FROM subscriptions WHERE id = taken.target) AS owner, (SELECT min(o.seq) FROM deliveries o
        WHERE o.target = taken.target AND o.n <> taken.n AND o.until > ${NOW}) AS before
    FROM taken`,
  due: `SELECT min(due_at) - ${NOW} AS ms FROM deliveries WHERE ${MAY_TAKE}`,
  settle: "SELECT settle_delivery($1, $2, $3, $4) AS outcome",
  forget: `WITH expired AS (DELETE FROM subscriptions WHERE expires_at <= ${NOW})
    DELETE FROM deliveries d WHERE until <= ${NOW}
      OR (seq IS NOT NULL AND NOT EXISTS (SELECT 1 FROM subscriptions WHERE id = d.target AND ${LIVING}))`,
} as const;

const Found = z.object({ found: z.boolean() });
const Subscribing = z.object({ reached: z.enum(["total", "perPrincipal"]).nullable(), truncated: z.boolean() });
const Position = z.object({ feedId: z.string(), seq: z.int() });
const Due = z.object({ ms: z.int().nullable() });
const Taken = z.object({ ...DeliveryRow.shape, feedId: z.string() });
const Outcome = z.object({ outcome: z.enum(["retry", "delivered", "abandoned", "missing"]) });

/** Makes an outbox whose times are those of the database. `onAdded` wakes those who deliver, at all nodes. */
export function databaseOutbox(use: UseDatabase, { nodeId, onAdded }: { nodeId: string; onAdded: () => void }): Outbox {
  return {
    subscribe: async (...given) => {
      const done = await use(async (db) => subscribe(db, ...given));
      onAdded();
      return done;
    },
    find: async (id) => use(async (db) => findSubscription(db, id)),
    isVerified: async (principal, url) => use(async (db) => isFound(db, sql.isVerified, [jsonText(principal), url])),
    unsubscribe: async (id) => use(async (db) => isFound(db, sql.unsubscribe, [id])),
    add: async (sessionId, deliveries) => {
      await use(async (db) => db.run(sql.add, [[sessionId], ...deliveryColumns([deliveries])]));
      onAdded();
    },
    withdraw: async (_, target, messageId) => use(async (db) => db.run(sql.withdraw, [target, messageId])),
    take: async ({ except, exceptOwners = [], hasSubscribers, holdMs, limit, targets }) => {
      const values = [targets, nodeId, hasSubscribers, limit, holdMs, except, exceptOwners.map(jsonText)];
      const rows = await use(async (db) => db.all(sql.take, Taken, values));
      return deliveriesOf(rows, rows[0]?.feedId ?? "");
    },
    dueInMs: async ({ hasSubscribers, targets }) => {
      const due = await use(async (db) => db.get(sql.due, Due, [targets, nodeId, hasSubscribers]));
      return typeof due?.ms === "number" ? Math.max(0, due.ms) : undefined;
    },
    settle: async (delivery, result) => use(async (db) => settle(db, delivery, result)),
  };
}

async function isFound(db: Database, text: string, values: readonly string[]): Promise<boolean> {
  return (await db.get(text, Found, values))?.found === true;
}

async function findSubscription(db: Database, id: string): Promise<Subscription | undefined> {
  return db.get(sql.find, SubscriptionRow, [id]);
}

async function subscribe(
  db: Database,
  ...[terms, { graceMs, limits, start }]: Parameters<Outbox["subscribe"]>
): ReturnType<Outbox["subscribe"]> {
  const { id, name, principal, secret, ttlMs, url } = terms;
  const what = [id, jsonText(principal), name, ...filterColumns(terms), url, secret, ttlMs, graceMs];
  const from = [...cursorColumns(start.after), start.since ?? 0];
  const values = [VERSION, ...what, limits.total, limits.perPrincipal, ...from];
  const { reached, truncated } = Subscribing.parse(await db.get(sql.subscribe, Subscribing, values));
  if (reached) return reached;
  const subscription = await findSubscription(db, id);
  const position = await db.get(sql.settled, Position, [id]);
  if (!subscription || !position) throw new Error("the subscription expires at once");
  return { subscription, cursor: writeCursor(position), isTruncated: truncated };
}

/**
 * Repeats the statement after an outage, because its first run may have committed. Returns the intended end if the delivery no
 * longer exists then: the first run has ended the delivery, or it was withdrawn.
 */
async function settle(
  db: Database,
  { messageId, target }: Delivery,
  result: DeliveryResult,
): ReturnType<Outbox["settle"]> {
  const fault = result.is === "delivered" ? null : result.fault;
  const values = [target, messageId, fault, result.is === "retry" ? result.afterMs : null];
  const attempt = async (isRepeatable: boolean) =>
    Outcome.parse(await db.get(sql.settle, Outcome, values, { isRepeatable })).outcome;
  try {
    return await attempt(false);
  } catch (error) {
    if (!(error instanceof StoreError && error.isOutage)) throw error;
    const outcome = await attempt(true);
    if (outcome !== "missing") return outcome;
    return result.is === "delivered" ? "delivered" : "abandoned";
  }
}

/** Deletes expired subscriptions, and deliveries that nobody will make. */
export async function forgetDeliveries(db: Database): Promise<void> {
  await db.run(sql.forget);
}
