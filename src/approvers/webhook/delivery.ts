import { createHmac } from "node:crypto";

/** HTTP request to the receiver. */

export interface Receiver {
  readonly url: string;
  readonly key: Buffer;
  /** Time limit for the receiver's response, ms. */
  readonly timeoutMs: number;
}

export interface Attempt {
  readonly delivered: boolean;
  /** The receiver has answered 410 and wants no further deliveries. */
  readonly gone: boolean;
  /** Result in words, for logs. */
  readonly answer: string;
  readonly retryAfterMs?: number | undefined;
}

const GONE = 410;

/** Sends `message` once. Never rejects; `signal` aborts the attempt. */
export async function attempt(
  { key, timeoutMs, url }: Receiver,
  message: { readonly id: string; readonly body: string },
  signal: AbortSignal,
): Promise<Attempt> {
  const signed = sign(key, { ...message, at: Date.now() });
  // Uses one `AbortController` with a strong reference: Node 20 can garbage-collect a signal of `AbortSignal.any` or
  // `AbortSignal.timeout` while the signal is pending.
  const enough = new AbortController();
  const stop = () => enough.abort();
  const timer = setTimeout(() => enough.abort(new DOMException("no answer in time", "TimeoutError")), timeoutMs);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": "claude-agents-mcp", ...signed },
      body: message.body,
      // Follows no redirect, because only the receiver named by the operator may get the notice.
      redirect: "manual",
      signal: enough.signal,
    });
    // Discards the body, so that a receiver with an endless response does not keep the connection.
    void response.body?.cancel().catch(() => undefined);
    const { headers, ok: delivered, status } = response;
    const wish = parseRetryAfter(headers.get("retry-after"), Date.now());
    return { delivered, gone: status === GONE, answer: `status ${String(status)}`, retryAfterMs: wish };
  } catch (error) {
    return { delivered: false, gone: false, answer: failureReason(error) };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** Returns the cause of a failed fetch, because the error itself only says that fetch failed. Neither contains the URL. */
function failureReason(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if (error.name === "TimeoutError") return "no answer in time";
  const { cause } = error;
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  return typeof code === "string" ? code : error.name;
}

/** Headers that authenticate a delivery, by Standard Webhooks: https://www.standardwebhooks.com. */

export interface SignatureHeaders {
  readonly "webhook-id": string;
  readonly "webhook-timestamp": string;
  readonly "webhook-signature": string;
}

/**
 * Signs a delivery. `at` is the time of this attempt, ms since the epoch: receivers refuse signatures older than some minutes.
 */
export function sign(key: Buffer, { at, body, id }: { id: string; at: number; body: string }): SignatureHeaders {
  const timestamp = String(Math.floor(at / 1000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`, "utf8").digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}

/** Delay of a delivery before the next attempt. */

const BACKOFF_FACTOR = 4;

/** Upper bound of the delay, including `retryAfterMs`, ms. */
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
export function parseRetryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
