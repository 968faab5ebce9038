import { EventEmitter, once } from "node:events";

/** What a test waits for: each change makes all who wait look again. */
export class Changes {
  readonly #emitter = new EventEmitter().setMaxListeners(0);

  changed(): void {
    this.#emitter.emit("change");
  }

  /** What `look` finds, as soon as it finds something. Rejects after 20 s. */
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
