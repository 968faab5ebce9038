/** Number of ticks in a countdown. */
const TICKS = 20;

/**
 * Countdown of `ms` in `TICKS` ticks. A freeze of this process uses up at most one tick, so that input received meanwhile is
 * read before `onOver`. Calls `onOver` at zero unless `end` was called.
 */
export class Countdown {
  #ticksLeft = TICKS;
  readonly #ms: number;
  readonly #timer: NodeJS.Timeout;

  constructor(ms: number, onOver?: () => void) {
    this.#ms = ms;
    this.#timer = setInterval(() => {
      this.#ticksLeft -= 1;
      if (this.#ticksLeft > 0) return;
      this.end();
      onOver?.();
    }, ms / TICKS);
  }

  get leftMs(): number {
    return (this.#ms * this.#ticksLeft) / TICKS;
  }

  end(): void {
    clearInterval(this.#timer);
  }
}
