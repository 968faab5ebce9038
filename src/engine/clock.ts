import type { Clock } from "./ports.ts";

/** Interval at which a waiting timer checks the time, ms. */
const LOOK_MS = 5_000;
/** Minimum check interval of a limit, ms. The interval is a tenth of the limit, so that a freeze uses up little. */
const LIMIT_LOOK_MS = 250;
/** Maximum gap between two checks, in intervals. A longer gap means that the machine slept or this process was stopped. */
const SLEPT_LOOKS = 3;

/** System clocks under `AwakeClock`. */
interface SystemClocks {
  /** ms since the epoch. */
  readonly now: () => number;
  /** Clock in ms that cannot be set. Stops during sleep on Linux, not on other systems. */
  readonly monotonic: () => number;
  /** Clock in ms that cannot be set and goes on during sleep. */
  readonly elapsed: () => number;
}

interface Waiting {
  readonly lookMs: number;
}

/** Counts time awake: a gap above `SLEPT_LOOKS` intervals counts as one interval. */
export class AwakeClock implements Clock {
  readonly now: () => number;
  readonly elapsed: () => number;
  readonly #monotonic: () => number;
  #last: number;
  #ticks = 0;
  /** Ticks for timers without `isLimit`, which check at `LOOK_MS`: on a slow machine a lease must not be renewed late. */
  #slowTicks = 0;
  readonly #waiting = new Set<Waiting>();

  constructor({ elapsed, monotonic, now }: SystemClocks) {
    this.now = now;
    this.elapsed = elapsed;
    this.#monotonic = monotonic;
    this.#last = monotonic();
  }

  tick(): number {
    const now = this.#monotonic();
    const passed = now - this.#last;
    this.#last = now;
    this.#ticks += this.#awakeIn(passed, () => Math.min(...[...this.#waiting].map(({ lookMs }) => lookMs)));
    this.#slowTicks += this.#awakeIn(passed, () => LOOK_MS);
    return Math.floor(this.#ticks);
  }

  after(ms: number, callback: () => void, { isLimit = false } = {}): () => void {
    const awake = () => (this.tick(), isLimit ? this.#ticks : this.#slowTicks);
    const due = awake() + ms;
    const lookMs = isLimit ? Math.min(Math.max(ms / 10, LIMIT_LOOK_MS), LOOK_MS) : LOOK_MS;
    const waiting = { lookMs };
    this.#waiting.add(waiting);
    let timer: NodeJS.Timeout;
    const arm = () => {
      // A timer of Node can fire a little early.
      const left = due - awake();
      if (left <= 0) end(callback);
      else timer = setTimeout(arm, Math.min(left, lookMs)).unref();
    };
    const end = (last: () => void) => {
      if (this.#waiting.delete(waiting)) last();
    };
    // Never calls back before `after` has returned, even if nothing is left.
    timer = setTimeout(arm, Math.min(Math.max(ms, 0), lookMs)).unref();
    return () => end(() => clearTimeout(timer));
  }

  /** Without a waiting timer nothing checks the time, so a gap says nothing. */
  #awakeIn(passed: number, lookMs: () => number): number {
    if (this.#waiting.size === 0 || passed <= SLEPT_LOOKS * LIMIT_LOOK_MS) return passed;
    const look = lookMs();
    return passed > SLEPT_LOOKS * look ? look : passed;
  }
}

/** Runs `work` now, and again `everyMs` after each run. The returned function stops the rounds, and waits for a running round. */
export function repeatEvery(
  clock: Pick<Clock, "after">,
  everyMs: number,
  work: () => Promise<void>,
): () => Promise<void> {
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

/** Resolves with `work`, or with `undefined` as soon as `signal` aborts. Leaves no listener at `signal`. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) return undefined;
  const done = new AbortController();
  const aborted = new Promise<undefined>((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { signal: done.signal });
  });
  return Promise.race([work, aborted]).finally(() => done.abort());
}

/** Begins a pause. `over` resolves after `ms`, or once `end` is called. */
export function pause(
  clock: Pick<Clock, "after">,
  ms: number,
): { readonly over: Promise<void>; readonly end: () => void } {
  let end: () => void = () => undefined;
  const over = new Promise<void>((resolve) => {
    const cancel = clock.after(ms, resolve);
    end = () => {
      cancel();
      resolve();
    };
  });
  return { over, end };
}
