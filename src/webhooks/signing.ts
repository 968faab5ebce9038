import { createHmac } from "node:crypto";

/** Headers that authenticate a delivery, by Standard Webhooks: https://www.standardwebhooks.com. */

export interface SignatureHeaders {
  readonly "webhook-id": string;
  readonly "webhook-timestamp": string;
  readonly "webhook-signature": string;
}

/**
 * Signs a delivery with each of `keys`: the receiver accepts any, so that a key can be replaced. `at` is the time of this
 * attempt, ms since the epoch: receivers refuse signatures older than some minutes.
 */
export function sign(
  keys: readonly Buffer[],
  { at, body, id }: { id: string; at: number; body: string },
): SignatureHeaders {
  const timestamp = String(Math.floor(at / 1000));
  const text = `${id}.${timestamp}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac("sha256", key).update(text, "utf8").digest("base64")}`);
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}

/** Delay of a delivery before the next attempt. */

const BACKOFF_FACTOR = 4;

/** Maximum of the delay before its jitter of a quarter, and of `retryAfterMs`, ms. */
const MAX_DELAY_MS = 600_000;

export interface FailedDelivery {
  /** Number of failed attempts. */
  readonly attempts: number;
  /** Delay after the first attempt, ms. */
  readonly retryMs: number;
  /** Delay requested by the receiver, ms. */
  readonly retryAfterMs?: number | undefined;
  /** From 0 to 1. Spreads retries, so that a recovering receiver does not get all waiting deliveries at once. */
  readonly random: number;
}

/** Returns the delay before the next attempt, ms: exponential backoff with jitter. */
export function backoffMs({ attempts, random, retryAfterMs = 0, retryMs }: FailedDelivery): number {
  const wait = Math.min(retryMs * BACKOFF_FACTOR ** (attempts - 1), MAX_DELAY_MS) * (0.75 + random / 2);
  return Math.round(Math.max(wait, Math.min(retryAfterMs, MAX_DELAY_MS)));
}

/** Parses a Retry-After header, in seconds or as a date. Returns ms from `now`; `undefined` if missing or invalid. */
export function parseRetryAfter(header: string | null | undefined, now: number): number | undefined {
  if (header === null || header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
