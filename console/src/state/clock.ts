import { signal } from "@preact/signals";

/** What the time is, to the second. */
export const now = signal(Date.now());

// Nobody looks at a page that is hidden; when it is seen again the time is right at once.
const tick = () => {
  if (document.visibilityState === "visible") now.value = Date.now();
};
setInterval(tick, 1000);
document.addEventListener("visibilitychange", tick);
