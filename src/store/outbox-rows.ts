import { z } from "zod";
import { FEED_NAMES } from "../domain/feed.ts";
import type { Delivery, FeedPage, FeedQuery, Subscription } from "../engine/ports.ts";
import { type FeedEnds, startAfter, writeCursor } from "./feed-cursor.ts";

/** Reads rows of the feed and the outbox, alike for all storage engines. */

export const FeedRow = z.object({
  seq: z.coerce.number(),
  name: z.enum(FEED_NAMES),
  sessionId: z.string(),
  eventId: z.coerce.number(),
  at: z.coerce.number(),
});

type FoundItems = FeedEnds & { readonly rows: readonly z.output<typeof FeedRow>[]; readonly isSkipped: boolean };

/** Makes a page of `rows`, one more than `limit` if there are more. `isSkipped`: matching items before `since` were left out. */
export function feedPage({ after, limit }: FeedQuery, { isSkipped, rows, ...ends }: FoundItems): FeedPage {
  const cursorAt = (seq: number) => writeCursor({ feedId: ends.feedId, seq });
  const items = rows.slice(0, limit).map(({ seq, ...row }) => ({ ...row, cursor: cursorAt(seq) }));
  const hasMore = rows.length > limit;
  const cursor = (hasMore ? items.at(-1)?.cursor : undefined) ?? cursorAt(ends.head);
  const [first] = rows;
  const start = first ? cursorAt(first.seq - 1) : cursor;
  return { items, start, cursor, isTruncated: startAfter(after, ends).isTruncated || isSkipped, hasMore };
}

const OptionalNumber = z.coerce
  .number()
  .nullable()
  .transform((value) => value ?? undefined);
const OptionalText = z
  .string()
  .nullable()
  .transform((value) => value ?? undefined);
/** Text written by people, as JSON (`jsonText`). */
const JsonText = z.string().transform((text) => z.string().parse(JSON.parse(text)));
const Fault = z.enum(["connection_refused", "timeout", "tls_error", "http_4xx", "http_5xx", "challenge_failed"]);

export const SubscriptionRow = z
  .object({
    id: z.string(),
    principal: JsonText,
    name: z.enum(FEED_NAMES),
    sessionId: OptionalText,
    cwd: JsonText.nullable(),
    url: z.string(),
    secret: z.string(),
    former: OptionalText,
    formerUntil: OptionalNumber,
    expiresAt: z.coerce.number(),
    deliveredAt: OptionalNumber,
    failedSince: OptionalNumber,
    fault: Fault.nullable().catch(null),
  })
  .transform(({ cwd, deliveredAt, failedSince, fault, former, formerUntil = 0, sessionId, ...rest }): Subscription => ({
    ...rest,
    filter: { ...(sessionId !== undefined && { sessionId }), ...(cwd !== null && { cwd }) },
    ...(former !== undefined && { formerSecret: { secret: former, until: formerUntil } }),
    ...(deliveredAt !== undefined && { deliveredAt }),
    ...(failedSince !== undefined && { failedSince }),
    ...(fault !== null && { lastFault: fault }),
  }));

/** Row of a taken delivery. `owner`: principal of the subscription; `before`: number of the oldest other item that waits for the same subscription. */
export const DeliveryRow = z.object({
  n: z.coerce.number(),
  target: z.string(),
  messageId: z.string(),
  sessionId: z.string(),
  eventId: z.coerce.number(),
  name: z.string(),
  seq: OptionalNumber,
  attempts: z.coerce.number(),
  until: z.coerce.number(),
  owner: JsonText.nullable(),
  before: OptionalNumber,
});

type DeliveryRow = z.output<typeof DeliveryRow>;

/** Returns taken deliveries, oldest first. */
export function deliveriesOf(rows: readonly DeliveryRow[], feedId: string): Delivery[] {
  return rows.toSorted((one, other) => one.n - other.n).map((row) => deliveryOf(row, feedId));
}

function deliveryOf({ before, seq, ...row }: DeliveryRow, feedId: string): Delivery {
  const { attempts, eventId, messageId, name, owner, sessionId, target, until } = row;
  const settled = seq !== undefined && before !== undefined && before < seq ? before - 1 : seq;
  return {
    attempts,
    eventId,
    messageId,
    name,
    sessionId,
    target,
    until,
    ...(owner !== null && { owner }),
    ...(settled !== undefined && { cursor: writeCursor({ feedId, seq: settled }) }),
  };
}
