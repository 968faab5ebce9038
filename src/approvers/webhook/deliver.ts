import { createHmac } from "node:crypto";

/** One request to the receiver. */

export interface Receiver {
  readonly url: string;
  readonly key: Buffer;
  /** An answer that has not come by then does not count, ms. */
  readonly timeoutMs: number;
}

export interface Attempt {
  readonly delivered: boolean;
  /** The receiver wants nothing any more. */
  readonly gone: boolean;
  /** What came of it, in words. */
  readonly answer: string;
  readonly retryAfterMs?: number | undefined;
}

const GONE = 410;

/** Never rejects. `signal` breaks it off. */
export async function attempt(
  { key, timeoutMs, url }: Receiver,
  message: { readonly id: string; readonly body: string },
  signal: AbortSignal,
): Promise<Attempt> {
  const signed = sign(key, { ...message, at: Date.now() });
  // One controller, held from here: Node 20 can collect a signal made by AbortSignal.any or .timeout while it is waited for.
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
      // Whom the operator has not named is told nothing.
      redirect: "manual",
      signal: enough.signal,
    });
    // Nothing in it matters. A receiver that never ends it must not keep the connection.
    void response.body?.cancel().catch(() => undefined);
    const { headers, ok: delivered, status } = response;
    const wish = retryAfter(headers.get("retry-after"), Date.now());
    return { delivered, gone: status === GONE, answer: `status ${String(status)}`, retryAfterMs: wish };
  } catch (error) {
    return { delivered: false, gone: false, answer: reasonOf(error) };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** fetch says of everything that it failed; what has failed is its cause. The URL is in neither. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if (error.name === "TimeoutError") return "no answer in time";
  const { cause } = error;
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  return typeof code === "string" ? code : error.name;
}

/** What a delivery carries so that its receiver knows whose it is: Standard Webhooks, https://www.standardwebhooks.com. */

export interface Signed {
  readonly "webhook-id": string;
  readonly "webhook-timestamp": string;
  readonly "webhook-signature": string;
}

/** `at`: of this attempt, ms since the epoch. Receivers refuse what is older than some minutes. */
export function sign(key: Buffer, { at, body, id }: { id: string; at: number; body: string }): Signed {
  const timestamp = String(Math.floor(at / 1000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`, "utf8").digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}

/** How long a delivery waits for its next attempt. */

const FACTOR = 4;

/** However often it has failed, and whatever the receiver wishes, ms. */
const MAX_DELAY_MS = 600_000;

export interface Failed {
  /** How many attempts there have been. */
  readonly attempts: number;
  /** The first wait, ms. */
  readonly retryMs: number;
  /** What the receiver asks for, ms. */
  readonly retryAfterMs?: number | undefined;
  /** From 0 to 1: receivers that come back are not met by all that waits at once. */
  readonly random: number;
}

/** ms */
export function backOff({ attempts, random, retryAfterMs = 0, retryMs }: Failed): number {
  const wait = Math.min(retryMs * FACTOR ** (attempts - 1), MAX_DELAY_MS) * (0.75 + random / 2);
  return Math.round(Math.max(wait, Math.min(retryAfterMs, MAX_DELAY_MS)));
}

/** Of a Retry-After header, in seconds or as a date: ms from `now`; undefined where there is none that can be read. */
export function retryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
