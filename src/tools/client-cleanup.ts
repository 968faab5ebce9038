import { AppError } from "../domain/error.ts";
import type { Logger } from "../engine/ports.ts";

/** Ends one piece of work of a disconnected client. */
type Cleanup = () => Promise<unknown>;

/** Maximum number of entries for a client. Beyond it, the oldest is dropped: its work has ended long ago. */
const MAX_CLEANUPS = 10_000;

/** Work to end when the client disconnects, by prompt id or session id. Ending finished work is a no-op. */
export class ClientCleanup {
  readonly #log: Pick<Logger, "warn">;
  readonly #ends = new Map<string, Cleanup>();
  /** Aborted by `endWaits`. */
  readonly #late = new AbortController();
  #isGone = false;

  constructor(log: Pick<Logger, "warn">) {
    this.#log = log;
  }

  /** Runs `end` at once if the client is already gone. */
  add(id: string, end: Cleanup): void {
    if (this.#isGone) return this.#run(id, end);
    this.#ends.set(id, end);
    const [oldest] = this.#ends.keys();
    if (oldest !== undefined && this.#ends.size > MAX_CLEANUPS) this.#ends.delete(oldest);
  }

  /** Runs a call of the client. The signal passed to `run` aborts with `signal` and with `endWaits`. */
  async runCall<T>(signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    // Not `AbortSignal.any`: Node 20 can garbage-collect its signal during the wait.
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

  /** Ends the waits of the client's calls, so that each is answered with the present state. */
  endWaits(): void {
    this.#late.abort();
  }

  /** Ends all work of the client. Idempotent. */
  end(): void {
    this.#isGone = true;
    for (const [id, end] of this.#ends) this.#run(id, end);
    this.#ends.clear();
  }

  #run(id: string, end: Cleanup): void {
    end().catch((error: unknown) => {
      if (error instanceof AppError && error.code === "SESSION_NOT_FOUND") return;
      this.#log.warn("work of a client that is gone was not ended", { id, error: String(error) });
    });
  }
}
