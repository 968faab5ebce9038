/** Ticks of a countdown. */
const PARTS = 20;

/**
 * Countdown of `ms` in `PARTS` ticks. A freeze of this process uses up at most one tick, so that input received meanwhile is
 * read before `onOver`. Calls `onOver` at zero unless `end` was called.
 */
export class Patience {
  #parts = PARTS;
  readonly #ms: number;
  readonly #timer: NodeJS.Timeout;

  constructor(ms: number, onOver?: () => void) {
    this.#ms = ms;
    this.#timer = setInterval(() => {
      this.#parts -= 1;
      if (this.#parts > 0) return;
      this.end();
      onOver?.();
    }, ms / PARTS);
  }

  get leftMs(): number {
    return (this.#ms * this.#parts) / PARTS;
  }

  end(): void {
    clearInterval(this.#timer);
  }
}
