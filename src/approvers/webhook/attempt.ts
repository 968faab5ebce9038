import { retryAfter } from "./back-off.ts";
import { sign } from "./sign.ts";

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
