const cuts = new Set<() => void>();

/** Whoever waits for the server to come back asks it now. */
export function askNow(): void {
  for (const cut of cuts) cut();
}

addEventListener("online", askNow);
// Whoever comes back to the page does not wait for the end of a long pause.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") askNow();
});

const FIRST_MS = 500;
const LAST_MS = 2_000;

/** The pauses between attempts at a server that is gone: longer each time, and cut short when there is new hope. */
export class Patience {
  #nextMs = FIRST_MS;

  reset(): void {
    this.#nextMs = FIRST_MS;
  }

  async pause(): Promise<void> {
    const ms = this.#nextMs;
    this.#nextMs = Math.min(ms * 2, LAST_MS);
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        cuts.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      cuts.add(end);
    });
  }
}
