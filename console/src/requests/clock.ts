import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** The time, as long as anybody looks at it. */

const now = signal(Date.now());
let watchers = 0;
let timer: ReturnType<typeof setInterval> | undefined;

const TICK_MS = 1_000;

/** Renders its component each second. */
export function useNow(): number {
  useEffect(() => {
    watchers += 1;
    timer ??= setInterval(() => (now.value = Date.now()), TICK_MS);
    now.value = Date.now();
    return () => {
      watchers -= 1;
      if (watchers > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return now.value;
}
