/** Parts in which time is counted. */
const PARTS = 20;

/**
 * Counts `ms` of time awake down: a freeze of this process uses up one part at most, and what has arrived meanwhile is read before the time
 * is over. Calls `onOver` then, unless it is ended before.
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
