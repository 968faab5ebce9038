import { isOutage, type Clock, type InboxItem, type Lease, type SessionBackend, type SessionLog } from "./ports.ts";

/**
 * Repeats calls of the store for the owner of a session. During an outage of the store, such as a failover, Claude Code works
 * on.
 */

/** Delay before a call is repeated, ms. */
const AGAIN_MS = 1_000;

interface InboxHandlers {
  readonly item: (item: InboxItem) => void;
  readonly fault: (error: unknown) => void;
}

export class StoreRetry {
  readonly #clock: Pick<Clock, "after">;
  readonly #endPauses = new Set<() => void>();
  #isOver = false;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Repeats `work` while the store cannot be reached, until `end`. */
  async throughOutages<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!isOutage(error) || !(await this.pause())) throw error;
      }
    }
  }

  /** Returns `backend` with a log that is read in spite of outages. */
  withReads(backend: SessionBackend): SessionBackend {
    const read: SessionLog["read"] = async (...page) => this.throughOutages(async () => backend.log.read(...page));
    return { ...backend, log: { ...backend.log, read } };
  }

  /**
   * Gives each command of the inbox to `take`, until `signal` aborts. Reads again after a failure, because without its inbox the
   * session would answer no other server.
   */
  async receive({ inbox }: SessionBackend, lease: Lease, signal: AbortSignal, on: InboxHandlers): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const item of inbox.receive(lease, signal)) on.item(item);
        return;
      } catch (error) {
        on.fault(error);
        await this.pause();
      }
    }
  }

  /** Resolves after `AGAIN_MS` with true, or at `end` with false. */
  async pause(): Promise<boolean> {
    if (this.#isOver) return false;
    let end: () => void = () => undefined;
    let cancel = end;
    await new Promise<void>((resolve) => {
      end = resolve;
      this.#endPauses.add(end);
      cancel = this.#clock.after(AGAIN_MS, resolve);
    });
    cancel();
    return this.#endPauses.delete(end);
  }

  /** Ends all pauses, because the owner gives its session up. */
  end(): void {
    this.#isOver = true;
    for (const end of this.#endPauses) end();
    this.#endPauses.clear();
  }
}
