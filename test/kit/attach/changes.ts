import { EventEmitter, once } from "node:events";

/** Condition variable: each `changed()` makes every waiting `until()` look again. */
export class Changes {
  readonly #emitter = new EventEmitter().setMaxListeners(0);

  changed(): void {
    this.#emitter.emit("change");
  }

  /** Resolves with the first result of `look` other than `undefined`. Rejects after 20 s. */
  async until<T>(look: () => T | undefined): Promise<T> {
    const signal = AbortSignal.timeout(20_000);
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      await once(this.#emitter, "change", { signal }).catch((cause: unknown) => {
        throw new Error(`nothing for 20 s: ${String(look)}`, { cause });
      });
    }
  }
}
