/** Named latches that a script waits at: once released, a gate stays open. */
export class Gates {
  readonly #open = new Set<string>();
  readonly #waiting = new Map<string, Set<() => void>>();

  release(name: string): void {
    this.#open.add(name);
    for (const pass of this.#waiting.get(name) ?? []) pass();
    this.#waiting.delete(name);
  }

  /** Resolves when the gate is open; rejects with the signal's reason. */
  async pass(name: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#open.has(name)) return;
    const waiting = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, waiting);
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        waiting.delete(resolve);
        reject(signal.reason instanceof Error ? signal.reason : new Error("the wait at a gate was aborted"));
      };
      waiting.add(resolve);
      signal.addEventListener("abort", abort, { once: true });
    });
  }
}
