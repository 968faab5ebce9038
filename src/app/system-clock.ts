import { uptime } from "node:os";
import { AwakeClock } from "../engine/clock.ts";
import type { Clock } from "../engine/ports.ts";

/** Clock of this process. */
export const systemClock: Clock = new AwakeClock({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // On Linux, counts sleep, other than `performance.now`.
  elapsed: () => uptime() * 1000,
});
