/** Notifies subscribers of a change. It carries nothing: readers look for themselves. */
export class Notifier {
  readonly #listeners = new Set<() => void>();

  /** The returned function stops listening. */
  subscribe(onChange: () => void): () => void {
    this.#listeners.add(onChange);
    return () => this.#listeners.delete(onChange);
  }

  /** Has no subscribers. */
  get isUnused(): boolean {
    return this.#listeners.size === 0;
  }

  notify(): void {
    for (const onChange of this.#listeners) onChange();
  }
}

export interface TailOptions<T> {
  /** Each of them makes the reader look again. */
  notifiers: readonly Notifier[];
  /** Ends the reading at once, also in the middle of what was found. */
  signal: AbortSignal;
  /** What is new since the look before; undefined when nothing can come any more, which ends the reading. */
  look: () => readonly T[] | undefined | Promise<readonly T[] | undefined>;
}

/** All that `look` finds, now and later, in order. A slow reader costs no memory: the next look waits for it. */
export async function* tail<T>({ notifiers, signal, look }: TailOptions<T>): AsyncGenerator<T, void> {
  // A function stops TypeScript from narrowing `signal.aborted` to `false`.
  const ended = (): boolean => signal.aborted;
  let wake = (): void => undefined;
  const notify = (): void => wake();
  const leave = notifiers.map((notifier) => notifier.subscribe(notify));
  // Once for the whole reading: a listener per turn of the loop would pile up on a signal that lives long.
  signal.addEventListener("abort", notify, { once: true });
  try {
    while (!ended()) {
      // Armed before the look: what happens during or after it is not slept through.
      const changed = new Promise<void>((resolve) => (wake = resolve));
      const found = await look();
      if (found === undefined) return;
      for (const item of found) {
        if (ended()) return;
        yield item;
      }
      if (found.length === 0) await changed;
    }
  } finally {
    signal.removeEventListener("abort", notify);
    for (const stop of leave) stop();
  }
}
