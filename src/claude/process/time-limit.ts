/** Limits waits for another program. */

/**
 * Calls `onLate` after `ms`, unless the returned function is called before. Two timers in sequence let a server that was frozen
 * read waiting data before giving up.
 */
export function unlessWithin(ms: number, onLate: () => void): () => void {
  let timer = setTimeout(() => (timer = setTimeout(onLate, ms / 2)), ms / 2);
  return () => clearTimeout(timer);
}

/** Time limit for the end of a killed process, ms. Needed because a start may hang, or the kernel may hold the process. */
const KILLED_MS = 10_000;

/** Ends all waits for a process that is no longer wanted. */
export class KillSwitch {
  /** Resolves with an error text `KILLED_MS` after `kill`, even if the process has ended: race it against the end. */
  readonly overdue: Promise<string>;
  isOverdue = false;
  readonly #controller = new AbortController();
  #onOverdue: (why: string) => void = () => undefined;

  constructor() {
    this.overdue = new Promise((resolve) => (this.#onOverdue = resolve));
  }

  /** Aborts once `kill` is called. */
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
