/** Wakes those who wait for a change. A ring carries nothing: whoever hears it looks for himself. */
export class Bell {
  readonly #listeners = new Set<() => void>();

  /** The returned function stops listening. */
  listen(onRing: () => void): () => void {
    this.#listeners.add(onRing);
    return () => this.#listeners.delete(onRing);
  }

  /** Nobody listens. */
  get isSilent(): boolean {
    return this.#listeners.size === 0;
  }

  ring(): void {
    for (const onRing of this.#listeners) onRing();
  }
}

export interface Following<T> {
  /** Each of them makes the reader look again. */
  bells: readonly Bell[];
  /** Ends the reading at once, also in the middle of what was found. */
  signal: AbortSignal;
  /** What is new since the look before; undefined when nothing can come any more, which ends the reading. */
  look: () => readonly T[] | undefined | Promise<readonly T[] | undefined>;
}

/** All that `look` finds, now and later, in order. A slow reader costs no memory: the next look waits for it. */
export async function* follow<T>({ bells, signal, look }: Following<T>): AsyncGenerator<T, void> {
  // A function, because the compiler takes a property that it has seen false for false ever after.
  const ended = (): boolean => signal.aborted;
  let wake = (): void => undefined;
  const ring = (): void => wake();
  const leave = bells.map((bell) => bell.listen(ring));
  // Once for the whole reading: a listener per turn of the loop would pile up on a signal that lives long.
  signal.addEventListener("abort", ring, { once: true });
  try {
    while (!ended()) {
      // Armed before the look: what happens during or after it is not slept through.
      const rang = new Promise<void>((resolve) => (wake = resolve));
      const found = await look();
      if (found === undefined) return;
      for (const item of found) {
        if (ended()) return;
        yield item;
      }
      if (found.length === 0) await rang;
    }
  } finally {
    signal.removeEventListener("abort", ring);
    for (const stop of leave) stop();
  }
}
