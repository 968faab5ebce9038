import { AppError } from "../domain/error.ts";
import type { Logger } from "../engine/ports.ts";

/** Ends a piece of work of a client that is gone. */
type End = () => Promise<unknown>;

/** Of one client; beyond it the one that was added first is forgotten: it has ended long ago. */
const MAX_ENDS = 10_000;

/**
 * What ends with a client, by the id of its prompt or session; done once the client is gone. To end what has ended by itself
 * changes nothing.
 */
export class Leaving {
  readonly #log: Pick<Logger, "warn">;
  readonly #ends = new Map<string, End>();
  /** Aborts when calls are to wait no longer. */
  readonly #late = new AbortController();
  #isGone = false;

  constructor(log: Pick<Logger, "warn">) {
    this.#log = log;
  }

  /** Where the client is gone already, it is done at once. */
  add(id: string, end: End): void {
    if (this.#isGone) return this.#run(id, end);
    this.#ends.set(id, end);
    const [oldest] = this.#ends.keys();
    if (oldest !== undefined && this.#ends.size > MAX_ENDS) this.#ends.delete(oldest);
  }

  /** Runs a call of the client. Its signal aborts as `signal` does, and where the client is to be answered at once. */
  async answering<T>(signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    // Held from here: Node 20 can collect a signal made by AbortSignal.any while it is waited for.
    const enough = new AbortController();
    const stop = () => enough.abort();
    const signals = [signal, this.#late.signal];
    if (signals.some(({ aborted }) => aborted)) stop();
    for (const each of signals) each.addEventListener("abort", stop, { once: true });
    try {
      return await run(enough.signal);
    } finally {
      for (const each of signals) each.removeEventListener("abort", stop);
    }
  }

  /** Ends the waits of the client's calls: each is answered with what there is. */
  answerNow(): void {
    this.#late.abort();
  }

  /** The client is gone. Safe to call again. */
  end(): void {
    this.#isGone = true;
    for (const [id, end] of this.#ends) this.#run(id, end);
    this.#ends.clear();
  }

  #run(id: string, end: End): void {
    end().catch((error: unknown) => {
      if (error instanceof AppError && error.code === "SESSION_NOT_FOUND") return;
      this.#log.warn("work of a client that is gone was not ended", { id, error: String(error) });
    });
  }
}
