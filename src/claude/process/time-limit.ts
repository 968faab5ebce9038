/** Limits of waits for another program. */

/**
 * Calls `onLate` after `ms`, unless the returned function is called before. Two timers, so that a server that was frozen reads
 * what has arrived meanwhile before it gives up.
 */
export function unlessWithin(ms: number, onLate: () => void): () => void {
  let timer = setTimeout(() => (timer = setTimeout(onLate, ms / 2)), ms / 2);
  return () => clearTimeout(timer);
}

/** For the end of a process that is to be killed, whatever keeps it: a start that hangs, or the kernel. ms */
const KILLED_MS = 10_000;

/** Tells all who wait for a process that it is not wanted any more. */
export class KillSwitch {
  /** Resolves with a sentence when the process should have been gone since the kill. */
  readonly overdue: Promise<string>;
  isOverdue = false;
  readonly #controller = new AbortController();
  #onOverdue: (why: string) => void = () => undefined;

  constructor() {
    this.overdue = new Promise((resolve) => (this.#onOverdue = resolve));
  }

  /** Aborts with the kill. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  kill(): void {
    if (this.signal.aborted) return;
    this.#controller.abort();
    unlessWithin(KILLED_MS, () => {
      this.isOverdue = true;
      this.#onOverdue(`It was killed, and has not ended within ${String(KILLED_MS / 1000)} s.`);
    });
  }
}
