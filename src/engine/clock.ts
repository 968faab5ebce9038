import type { Clock } from "./ports.ts";

/** The longest delay that a timer of Node takes, ms; a later time is reached in several. */
const LONGEST_TIMER = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  at(time, callback) {
    let timer: NodeJS.Timeout;
    const arm = () => {
      const rest = time - Date.now();
      timer = setTimeout(rest > LONGEST_TIMER ? arm : callback, Math.min(Math.max(rest, 0), LONGEST_TIMER));
      timer.unref();
    };
    arm();
    return () => clearTimeout(timer);
  },
};
