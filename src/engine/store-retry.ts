import { type Command, type CommandReply, NO_ANSWER, NO_ENVIRONMENT } from "../domain/command.ts";
import type { ActorContext } from "./actor-context.ts";
import { pause } from "./clock.ts";
import { isOutage, type Clock, type InboxItem, type Lease, type SessionBackend, type SessionLog } from "./ports.ts";

/**
 * Repeats calls of the store for the owner of a session. During an outage of the store, such as a failover, Claude Code works
 * on.
 */

/** Delay before a call is repeated, ms. */
const AGAIN_MS = 1_000;

type Take = (command: Command) => Promise<CommandReply>;

export class StoreRetry {
  readonly #clock: Pick<Clock, "after">;
  readonly #backend: SessionBackend;
  readonly #onFault: (error: unknown) => void;
  readonly #endPauses = new Set<() => void>();
  readonly #answers = new Set<Promise<void>>();
  #isOver = false;

  constructor({ backend, clock }: Pick<ActorContext, "backend" | "clock">, onFault: (error: unknown) => void) {
    this.#clock = clock;
    this.#backend = backend;
    this.#onFault = onFault;
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

  /** Returns the store, with a log that is read in spite of outages. */
  withReads(): SessionBackend {
    const { log } = this.#backend;
    const read: SessionLog["read"] = async (...page) => this.throughOutages(async () => log.read(...page));
    return { ...this.#backend, log: { ...log, read } };
  }

  /**
   * Gives each command of the inbox to `take`, until `signal` aborts, and stores the answers. Reads again after a failure,
   * because without its inbox the session would answer no other server.
   */
  async receive(lease: Lease, signal: AbortSignal, take: Take): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const item of this.#backend.inbox.receive(lease, signal)) this.#answer(item, take);
        return;
      } catch (error) {
        this.#onFault(error);
        await this.pause();
      }
    }
  }

  /** Not awaited, because a second command may end the wait of the first. */
  #answer(item: InboxItem, take: Take): void {
    const answered = take(item.command)
      // Without an answer, the sender takes the session as soon as it is free.
      .then(async (reply) => (reply === NO_ENVIRONMENT || reply === NO_ANSWER ? undefined : item.ack(reply)))
      .catch((error: unknown) => this.#onFault(error))
      .finally(() => this.#answers.delete(answered));
    this.#answers.add(answered);
  }

  /** Resolves once the answers to all commands are stored. The store takes them from the owner only: call before a release. */
  async answered(): Promise<void> {
    await Promise.all(this.#answers);
  }

  /** Resolves after `AGAIN_MS` with true, or at `end` with false. */
  async pause(): Promise<boolean> {
    if (this.#isOver) return false;
    const { end, over } = pause(this.#clock, AGAIN_MS);
    this.#endPauses.add(end);
    await over;
    return this.#endPauses.delete(end);
  }

  /** Ends all pauses, because the owner gives its session up. */
  end(): void {
    this.#isOver = true;
    for (const end of this.#endPauses) end();
    this.#endPauses.clear();
  }
}
