import { signal } from "@preact/signals";

/** Current time, ms since the epoch, updated every second. */
export const now = signal(Date.now());

/** Updates `now`. Pauses while the page is hidden; `visibilitychange` corrects `now` at once. */
export function startClock(): void {
  const tick = () => {
    if (document.visibilityState === "visible") now.value = Date.now();
  };
  tick();
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);
}
