import { AppError } from "../domain/error.ts";

/**
 * Starts a slow resource once, for all callers: `ready` waits for the start, `now` and `get` do not. Over HTTP a server gets
 * requests before its engine has started, and may be told to end during the start.
 */
export class LazyStart<T, How = never> {
  readonly #start: (how: How | undefined, over: AbortSignal) => Promise<T>;
  #started: Promise<T> | undefined;
  #now: T | undefined;
  readonly #over = new AbortController();

  /** `over` aborts on `end`: from then on `start` must not wait for anything slow. */
  constructor(start: (how: How | undefined, over: AbortSignal) => Promise<T>) {
    this.#start = start;
  }

  /** Starts the resource unless started before; only then is `how` used. After a failed start the next call tries again. */
  async ready(how?: How): Promise<T> {
    if (!this.#started && this.#over.signal.aborted) throw new AppError("INTERNAL", "The server is shutting down.");
    this.#started ??= this.#begin(how);
    return this.#started;
  }

  /** The started resource; `undefined` until the start is over. */
  get now(): T | undefined {
    return this.#now;
  }

  /** Returns the resource to callers that cannot wait. Throws AppError before the start is over. */
  get(): T {
    if (this.#now === undefined) throw new AppError("INTERNAL", "The server is starting. Try again in a moment.");
    return this.#now;
  }

  /** Prevents further starts. Waits for a start under way, then resolves with the resource, if any. */
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
