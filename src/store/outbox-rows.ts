import { z } from "zod";
import { FEED_NAMES } from "../domain/feed.ts";
import type { Delivery, Subscription } from "../engine/ports.ts";
import { writeCursor } from "./feed-cursor.ts";

/** Reads rows of the feed and the outbox, alike for all storage engines. */

export const FeedRow = z.object({
  seq: z.coerce.number(),
  name: z.enum(FEED_NAMES),
  sessionId: z.string(),
  eventId: z.coerce.number(),
  at: z.coerce.number(),
});

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

/** Row of a taken delivery. `before`: number of the oldest other item that waits for the same subscription. */
export const DeliveryRow = z.object({
  target: z.string(),
  messageId: z.string(),
  sessionId: z.string(),
  eventId: z.coerce.number(),
  name: z.string(),
  seq: OptionalNumber,
  attempts: z.coerce.number(),
  until: z.coerce.number(),
  before: OptionalNumber,
});

export function deliveryOf({ before, seq, ...row }: z.output<typeof DeliveryRow>, feedId: string): Delivery {
  if (seq === undefined) return row;
  const settled = before === undefined || before > seq ? seq : before - 1;
  return { ...row, cursor: writeCursor({ feedId, seq: settled }) };
}
