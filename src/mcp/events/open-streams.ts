import { setImmediate as untilSent } from "node:timers/promises";
import type { Principal } from "../../domain/principal.ts";

/** Maximum number of open `events/stream` requests of a principal. */
export const MAX_STREAMS = 100;

interface OpenStream {
  readonly owner: object;
  readonly principal: Principal;
  readonly stop: AbortController;
  readonly over: Promise<void>;
}

/** Open `events/stream` requests of all connections, so that each gets its result before its connection closes. */
export class EventStreams {
  readonly #open = new Set<OpenStream>();

  /** True if `principal` must not open another stream. */
  isFull(principal: Principal): boolean {
    return [...this.#open].filter((each) => each.principal === principal).length >= MAX_STREAMS;
  }

  /**
   * Runs a stream of `principal` at the server `owner`. The signal passed to `run` aborts with `signal`, and with `end`.
   */
  async run(
    { owner, principal, signal }: { owner: object; principal: Principal; signal: AbortSignal },
    run: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    // Not `AbortSignal.any`: Node 20 can garbage-collect its signal during the wait.
    const stop = new AbortController();
    const abort = () => stop.abort();
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    const done = run(stop.signal);
    const stream = { owner, principal, stop, over: done.catch(() => undefined) };
    this.#open.add(stream);
    try {
      await done;
    } finally {
      this.#open.delete(stream);
      signal.removeEventListener("abort", abort);
    }
  }

  /** Ends the streams at `owner`, or all. Resolves once their results were sent. */
  async end(owner?: object): Promise<void> {
    const ending = [...this.#open].filter((stream) => owner === undefined || stream.owner === owner);
    if (ending.length === 0) return;
    for (const { stop } of ending) stop.abort();
    await Promise.all(ending.map(async ({ over }) => over));
    await untilSent();
  }
}
