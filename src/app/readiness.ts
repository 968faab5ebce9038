import { AppError } from "../domain/error.ts";

/**
 * Whether something is there that takes a while to start: one promise of it for all who wait, and one answer for all who
 * ask. Over HTTP a server is asked before what runs its sessions is there, and told to end while that starts.
 */
export class Readiness<T, How = never> {
  readonly #start: (how: How | undefined, over: AbortSignal) => Promise<T>;
  #started: Promise<T> | undefined;
  #now: T | undefined;
  readonly #over = new AbortController();

  /** `over` aborts when nothing is wanted any more: what may wait for long is not waited for then. */
  constructor(start: (how: How | undefined, over: AbortSignal) => Promise<T>) {
    this.#start = start;
  }

  /** Starts it unless it was started before; after a failed start the next call tries again. */
  async ready(how?: How): Promise<T> {
    if (!this.#started && this.#over.signal.aborted) throw new AppError("INTERNAL", "The server is shutting down.");
    this.#started ??= this.#begin(how);
    return this.#started;
  }

  /** What is there now; undefined before it is ready. */
  get now(): T | undefined {
    return this.#now;
  }

  /** For those who do not wait: throws AppError before it is ready. */
  get(): T {
    if (this.#now === undefined) throw new AppError("INTERNAL", "The server starts. Try again in a moment.");
    return this.#now;
  }

  /** From here on nothing is started. Resolves with what has been, once its start is over. */
  async end(): Promise<T | undefined> {
    this.#over.abort();
    return this.#started?.catch(() => undefined);
  }

  async #begin(how?: How): Promise<T> {
    try {
      return (this.#now = await this.#start(how, this.#over.signal));
    } catch (error) {
      this.#started = undefined;
      throw error;
    }
  }
}
