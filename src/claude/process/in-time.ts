import { setTimeout as sleep } from "node:timers/promises";

/** Whether the promise was settled within `ms`. */
export async function before(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(ms, false, { signal: timer.signal, ref: false }).catch(() => false);
  const inTime = await Promise.race([promise.then(() => true), late]);
  timer.abort();
  return inTime;
}
