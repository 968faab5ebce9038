/** Condition variable: `until` resolves once `condition` holds, checked after every `ring`. */
export class Moments {
  readonly #waiting = new Set<() => void>();

  ring(): void {
    for (const look of this.#waiting) look();
  }

  async until(condition: () => boolean): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (!condition()) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
    });
  }
}
