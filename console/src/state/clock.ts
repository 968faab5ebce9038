import { signal } from "@preact/signals";

/** The current time, updated every second. */
export const now = signal(Date.now());

/** Pauses while the page is hidden; `visibilitychange` corrects the time at once. */
export function startClock(): void {
  const tick = () => {
    if (document.visibilityState === "visible") now.value = Date.now();
  };
  tick();
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);
}
