/** Notifies subscribers of a change. Carries no data: readers look for themselves. */
export class Notifier {
  readonly #listeners = new Set<() => void>();

  /** Returns the function that unsubscribes. */
  subscribe(onChange: () => void): () => void {
    this.#listeners.add(onChange);
    return () => this.#listeners.delete(onChange);
  }

  /** True without subscribers. */
  get isUnused(): boolean {
    return this.#listeners.size === 0;
  }

  notify(): void {
    for (const onChange of this.#listeners) onChange();
  }
}

export interface FollowOptions<T> {
  /** Sources of changes. Each notification makes the reader call `look` again. */
  notifiers: readonly Notifier[];
  /** Ends the reading at once, also in the middle of found items. */
  signal: AbortSignal;
  /** Returns the items since the last call. `undefined` ends the reading, because no item can come any more. */
  look: () => readonly T[] | undefined | Promise<readonly T[] | undefined>;
  /** True if `look` has found all there was, so that nothing need be sought before the next change. */
  isAll?: ((found: readonly T[]) => boolean) | undefined;
}

/**
 * Yields all items that `look` finds, now and later, in order. A slow reader costs no memory, because the next `look` waits.
 */
export async function* followChanges<T>({ isAll, notifiers, signal, look }: FollowOptions<T>): AsyncGenerator<T, void> {
  // A function stops TypeScript from narrowing `signal.aborted` to `false`.
  const ended = (): boolean => signal.aborted;
  let wake = (): void => undefined;
  const notify = (): void => wake();
  const leave = notifiers.map((notifier) => notifier.subscribe(notify));
  // Registers once for the whole reading: a listener per iteration would pile up on a long-lived signal.
  signal.addEventListener("abort", notify, { once: true });
  try {
    while (!ended()) {
      // Created before `look`, so that no change during or after the call is missed.
      const changed = new Promise<void>((resolve) => (wake = resolve));
      const found = await look();
      if (found === undefined) return;
      for (const item of found) {
        if (ended()) return;
        yield item;
      }
      if (found.length === 0 || isAll?.(found)) await changed;
    }
  } finally {
    signal.removeEventListener("abort", notify);
    for (const stop of leave) stop();
  }
}
