import { z } from "zod";
import type {
  Delivery,
  DeliveryResult,
  DeliveryScope,
  Outbox,
  Subscribed,
  Subscription,
  SubscriptionLimits,
  SubscriptionTerms,
} from "../../engine/ports.ts";
import { DELIVERY_MS, startAfter, writeCursor } from "../feed-cursor.ts";
import { deliveriesOf, DeliveryRow, SubscriptionRow } from "../outbox-rows.ts";
import { jsonText } from "../texts.ts";
import type { Connection } from "./connect/connection.ts";
import { addDeliveries, filterValues, MATCHING, readEnds, readFeed } from "./feed.ts";

const LIVING = "expires_at > $now";
const mayTake = `(target IN (SELECT value FROM json_each($targets))
    OR ($hasSubscribers AND target IN (SELECT id FROM subscriptions WHERE ${LIVING}))) AND coalesce(node, $nodeId) = $nodeId`;

const sql = {
  find: `SELECT id, principal, name, session_id AS "sessionId", cwd, url, secret, former, former_until AS "formerUntil",
    expires_at AS "expiresAt", delivered_at AS "deliveredAt", failed_since AS "failedSince", fault
    FROM subscriptions WHERE id = $id AND ${LIVING}`,
  isVerified: `SELECT 1 AS found FROM subscriptions WHERE principal = $principal AND url = $url AND ${LIVING} LIMIT 1`,
  counts: `SELECT count(*) AS total, coalesce(sum(principal = $principal), 0) AS "perPrincipal" FROM subscriptions
    WHERE ${LIVING}`,
  insert: `INSERT INTO subscriptions(id, principal, name, session_id, cwd, url, secret, expires_at)
    VALUES($id, $principal, $name, $sessionId, $cwd, $url, $secret, $expiresAt)`,
  renew: `UPDATE subscriptions SET expires_at = $expiresAt,
      former = CASE WHEN secret = $secret THEN former ELSE secret END,
      former_until = CASE WHEN secret = $secret THEN former_until ELSE $formerUntil END, secret = $secret
    WHERE id = $id`,
  remove: "DELETE FROM subscriptions WHERE id = $id",
  removeDeliveries: "DELETE FROM deliveries WHERE target = $id",
  replay: `INSERT INTO deliveries(target, message_id, session_id, event_id, name, seq, until)
    SELECT $id, f.session_id || '_' || f.event_id, f.session_id, f.event_id, f.name, f.seq, $now + ${String(DELIVERY_MS)}
    ${MATCHING} ORDER BY f.seq`,
  waits: "SELECT min(seq) AS seq FROM deliveries WHERE target = $id AND until > $now",
  withdraw: "DELETE FROM deliveries WHERE target = $target AND message_id = $messageId",
  take: `UPDATE deliveries SET due_at = $now + $holdMs, attempts = attempts + 1 WHERE n IN
      (SELECT n FROM deliveries WHERE due_at <= $now AND until > $now AND ${mayTake}
        AND target NOT IN (SELECT value FROM json_each($except)) AND target NOT IN (SELECT id FROM subscriptions
          WHERE principal IN (SELECT value FROM json_each($exceptOwners))) ORDER BY n LIMIT $limit)
    RETURNING target, message_id AS "messageId", session_id AS "sessionId", event_id AS "eventId", name, seq,
      attempts - 1 AS attempts, until, n, (SELECT principal FROM subscriptions WHERE id = deliveries.target) AS owner, (SELECT min(o.seq) FROM deliveries o
        WHERE o.target = deliveries.target AND o.n <> deliveries.n AND o.until > $now) AS before`,
  due: `SELECT min(due_at) AS at FROM deliveries WHERE until > $now AND ${mayTake}`,
  end: "DELETE FROM deliveries WHERE target = $target AND message_id = $messageId",
  retry: "UPDATE deliveries SET due_at = $dueAt WHERE target = $target AND message_id = $messageId AND until > $dueAt",
  succeed: "UPDATE subscriptions SET delivered_at = $now, failed_since = NULL, fault = NULL WHERE id = $target",
  fail: `UPDATE subscriptions SET failed_since = coalesce(failed_since, $now), fault = $fault WHERE id = $target`,
  forget: "DELETE FROM subscriptions WHERE expires_at <= $now",
  forgetDeliveries: `DELETE FROM deliveries WHERE until <= $now
    OR (seq IS NOT NULL AND target NOT IN (SELECT id FROM subscriptions))`,
} as const;

const Counts = z.object({ total: z.number(), perPrincipal: z.number() });
const Sequence = z.object({ seq: z.number().nullable() });
const DueAt = z.object({ at: z.number().nullable() });
const Found = z.object({ found: z.number() });

interface Access {
  readonly nodeId: () => string;
  readonly read: <T>(work: (db: Connection) => T) => Promise<T>;
  /** `barrier`: on the disk before the answer, on which subscribers and approvers rely. */
  readonly write: <T>(work: (db: Connection) => T, urgency?: "barrier" | "immediate") => Promise<T>;
  readonly now: () => number;
  /** Called after an addition, to wake those who deliver. */
  readonly onAdded: () => void;
}

export function createOutbox({ nodeId, now, onAdded, read, write }: Access): Outbox {
  const scopeValues = ({ hasSubscribers, targets }: DeliveryScope) => ({
    now: now(),
    nodeId: nodeId(),
    targets: JSON.stringify(targets),
    hasSubscribers: Number(hasSubscribers),
  });
  return {
    subscribe: async (terms, given) => {
      const done = await write((db) => subscribe(db, terms, { ...given, now: now() }));
      onAdded();
      return done;
    },
    find: async (id) => read((db) => findSubscription(db, id, now())),
    isVerified: async (principal, url) =>
      read((db) => db.get(sql.isVerified, Found, { principal: jsonText(principal), url, now: now() }) !== undefined),
    unsubscribe: async (id) => write((db) => findSubscription(db, id, now()) !== undefined && removeWhole(db, id)),
    add: async (sessionId, deliveries) => {
      await write((db) => addDeliveries(db, sessionId, deliveries, now()));
      onAdded();
    },
    withdraw: async (_, target, messageId) => write((db) => void db.run(sql.withdraw, { target, messageId })),
    take: async ({ except, exceptOwners = [], holdMs, limit, ...scope }) =>
      write((db) => {
        const texts = { except: JSON.stringify(except), exceptOwners: JSON.stringify(exceptOwners.map(jsonText)) };
        const values = { holdMs, limit, ...texts, ...scopeValues(scope) };
        const { feedId } = readEnds(db);
        return deliveriesOf(db.all(sql.take, DeliveryRow, values), feedId);
      }, "immediate"),
    dueInMs: async (scope) => {
      const values = scopeValues(scope);
      const at = (await read((db) => db.get(sql.due, DueAt, values)))?.at ?? null;
      return at === null ? undefined : Math.max(0, at - values.now);
    },
    settle: async (delivery, result) => write((db) => settle(db, delivery, result, now()), "immediate"),
  };
}

function findSubscription(db: Connection, id: string, now: number): Subscription | undefined {
  return db.get(sql.find, SubscriptionRow, { id, now });
}

function removeWhole(db: Connection, id: string): boolean {
  db.run(sql.removeDeliveries, { id });
  return db.run(sql.remove, { id }) > 0;
}

type Given = Parameters<Outbox["subscribe"]>[1] & { readonly now: number };

function subscribe(db: Connection, terms: SubscriptionTerms, given: Given): Subscribed | keyof SubscriptionLimits {
  const { id, secret } = terms;
  const { graceMs, now } = given;
  const expiresAt = now + terms.ttlMs;
  if (findSubscription(db, id, now)) {
    db.run(sql.renew, { id, secret, expiresAt, formerUntil: now + graceMs });
    return subscribed(db, id, { now, isTruncated: false });
  }
  removeWhole(db, id);
  const limit = reachedLimit(db, terms, given);
  if (limit) return limit;
  const { name, principal, url } = terms;
  const filter = filterValues(terms);
  db.run(sql.insert, { id, principal: jsonText(principal), name, url, secret, expiresAt, ...filter });
  return subscribed(db, id, { now, isTruncated: replay(db, terms, given) });
}

function reachedLimit(
  db: Connection,
  { principal }: SubscriptionTerms,
  { limits, now }: Given,
): keyof SubscriptionLimits | undefined {
  const counts = Counts.parse(db.get(sql.counts, Counts, { principal: jsonText(principal), now }));
  if (counts.perPrincipal >= limits.perPrincipal) return "perPrincipal";
  return counts.total >= limits.total ? "total" : undefined;
}

/** Adds deliveries of the items since `start`. Returns true if some of them are gone or too old. */
function replay(db: Connection, terms: SubscriptionTerms, { now, start: { after, since } }: Given): boolean {
  if (after === undefined) return false;
  const { id, name, principal } = terms;
  const { seq } = startAfter(after, readEnds(db));
  const where = { principal: jsonText(principal), name, after: seq, since: since ?? 0, ...filterValues(terms) };
  db.run(sql.replay, { id, now, ...where });
  return readFeed(db, { ...terms, after, since, limit: 1 }).isTruncated;
}

function subscribed(
  db: Connection,
  id: string,
  { isTruncated, now }: { isTruncated: boolean; now: number },
): Subscribed {
  const subscription = findSubscription(db, id, now);
  if (!subscription) throw new Error("the subscription expires at once");
  const { feedId, head } = readEnds(db);
  const seq = db.get(sql.waits, Sequence, { id, now })?.seq ?? null;
  return { subscription, cursor: writeCursor({ feedId, seq: seq === null ? head : seq - 1 }), isTruncated };
}

function settle(
  db: Connection,
  { messageId, target }: Delivery,
  result: DeliveryResult,
  now: number,
): Awaited<ReturnType<Outbox["settle"]>> {
  const key = { target, messageId };
  if (result.is === "delivered") db.run(sql.succeed, { target, now });
  else db.run(sql.fail, { target, now, fault: result.fault });
  if (result.is === "retry" && db.run(sql.retry, { ...key, dueAt: now + result.afterMs }) > 0) return "retry";
  if (db.run(sql.end, key) === 0) return "missing";
  return result.is === "delivered" ? "delivered" : "abandoned";
}

/** Deletes expired subscriptions, and deliveries that nobody will make. */
export function forgetDeliveries(db: Connection, now: number): void {
  db.run(sql.forget, { now });
  db.run(sql.forgetDeliveries, { now });
}
