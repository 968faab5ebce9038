const pending = new Set<() => void>();

/** Ends all pauses, so that `Backoff` users retry at once. */
export function retryNow(): void {
  for (const end of pending) end();
}

/** Calls `retryNow` when the network or the user comes back, without waiting for the end of a long pause. */
export function startRetries(): void {
  addEventListener("online", retryNow);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") retryNow();
  });
}

const FIRST_MS = 500;
const MAX_MS = 2_000;

/** Exponential backoff between attempts to reach the server; `retryNow` cuts a pause short. */
export class Backoff {
  #nextMs = FIRST_MS;

  reset(): void {
    this.#nextMs = FIRST_MS;
  }

  async pause(): Promise<void> {
    const ms = this.#nextMs;
    this.#nextMs = Math.min(ms * 2, MAX_MS);
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        pending.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      pending.add(end);
    });
  }
}
