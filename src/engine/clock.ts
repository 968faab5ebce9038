import type { Clock } from "./ports.ts";

/** Interval of looks at the time while a timer waits, ms. */
const LOOK_MS = 5_000;
/** A longer gap between looks, while a timer waited, means that the machine slept or this process was stopped. ms */
const SLEPT_MS = 3 * LOOK_MS;

/** What a clock is made of. */
interface Sources {
  /** ms since the epoch. */
  readonly now: () => number;
  /** A clock in ms that cannot be set. It stops during sleep on Linux, not on other systems. */
  readonly monotonic: () => number;
}

/** Time awake: a gap between looks (see `SLEPT_MS`) counts as one interval. */
export class AwakeClock implements Clock {
  readonly now: () => number;
  readonly #monotonic: () => number;
  #last: number;
  #ticks = 0;
  #waiting = 0;

  constructor({ monotonic, now }: Sources) {
    this.now = now;
    this.#monotonic = monotonic;
    this.#last = monotonic();
  }

  tick(): number {
    const now = this.#monotonic();
    const passed = now - this.#last;
    this.#last = now;
    // Without a waiting timer there are no looks, so a gap says nothing.
    this.#ticks += this.#waiting > 0 && passed > SLEPT_MS ? LOOK_MS : passed;
    return Math.floor(this.#ticks);
  }

  after(ms: number, callback: () => void): () => void {
    const due = this.tick() + ms;
    this.#waiting += 1;
    let timer: NodeJS.Timeout;
    const arm = () => {
      // A timer of Node can be a little early.
      const left = due - this.tick();
      if (left <= 0) end(callback);
      else timer = setTimeout(arm, Math.min(left, LOOK_MS)).unref();
    };
    let ended = false;
    const end = (last: () => void) => {
      if (ended) return;
      ended = true;
      this.#waiting -= 1;
      last();
    };
    // Not before this has returned, however little is left.
    timer = setTimeout(arm, Math.min(Math.max(ms, 0), LOOK_MS)).unref();
    return () => end(() => clearTimeout(timer));
  }
}

/** Does the work now, and again so long after each time; the returned function ends that, and waits for a round that is under way. */
export function inRounds(clock: Pick<Clock, "after">, everyMs: number, work: () => Promise<void>): () => Promise<void> {
  let cancel: () => void = () => undefined;
  let stopped = false;
  const round = async () => {
    await work();
    if (!stopped) cancel = clock.after(everyMs, () => void (running = round()));
  };
  let running = round();
  return async () => {
    stopped = true;
    cancel();
    await running;
  };
}

export const systemClock: Clock = new AwakeClock({ now: () => Date.now(), monotonic: () => performance.now() });
