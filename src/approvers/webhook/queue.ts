import { setTimeout as sleep } from "node:timers/promises";
import { send, type Attempt } from "../../webhooks/send.ts";
import { backoffMs } from "../../webhooks/signing.ts";

/** Queue of deliveries: in memory, bounded, several at a time, in no guaranteed order. Sessions never wait for a delivery. */

/**
 * End of a delivery. `failed`: no attempt succeeded. `gone`: the receiver wants no further deliveries (410). `dropped`: the
 * queue was full, or the server has stopped. `obsolete`: the request was answered meanwhile.
 */
export type Outcome = "delivered" | "failed" | "gone" | "dropped" | "obsolete";

export interface Delivery {
  /** Unique, and equal in all attempts. */
  readonly id: string;
  readonly body: () => Promise<string>;
  /** False if the delivery is no longer needed. */
  readonly isWanted: () => boolean;
  /** Attempts after this time are useless, ms since the epoch. */
  readonly until: () => number;
  /** Called after each failed attempt that will be retried. */
  readonly failed: (attempts: number, answer: string, waitMs: number) => void;
  /** Called once. */
  readonly settled: (outcome: Outcome, attempts: number, answer: string) => void;
}

export interface NamedReceiver {
  readonly url: string;
  readonly key: Buffer;
  /** Time limit for the receiver's response, ms. */
  readonly timeoutMs: number;
}

export interface QueueOptions {
  readonly receiver: NamedReceiver;
  readonly attempts: number;
  readonly retryMs: number;
  /** Maximum number of waiting deliveries; one more drops the oldest. */
  readonly maxWaiting: number;
  /** Maximum number of concurrent attempts. */
  readonly maxConcurrent: number;
}

const GONE = 410;

interface WaitingDelivery {
  readonly delivery: Delivery;
  /** Aborted when no further attempt will follow; an attempt in progress still completes. */
  readonly stop: AbortController;
  /** Outcome, set when `stop` is aborted. */
  ended?: Outcome;
}

interface Result {
  readonly outcome: Outcome;
  readonly attempts: number;
  readonly answer: string;
}

export class DeliveryQueue {
  readonly #options: QueueOptions;
  /** Oldest first. */
  readonly #waiting = new Map<string, WaitingDelivery>();
  readonly #waitingForTurn = new Set<() => void>();
  readonly #running = new Set<Promise<void>>();
  /** Aborted when the queue closes: each waiting delivery has one attempt left. */
  readonly #closing = new AbortController();
  /** Aborted at the end of the grace period: all attempts stop. */
  readonly #over = new AbortController();
  #underWay = 0;
  #isGone = false;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  add(delivery: Delivery): void {
    if (this.#isGone) return delivery.settled("gone", 0, "an earlier answer was 410");
    if (this.#over.signal.aborted) return delivery.settled("dropped", 0, "the server ends");
    const [oldest] = this.#waiting.values();
    if (oldest && this.#waiting.size >= this.#options.maxWaiting) this.#end(oldest, "dropped");
    const waiting: WaitingDelivery = { delivery, stop: new AbortController() };
    this.#waiting.set(delivery.id, waiting);
    const carried = this.#deliver(waiting).then((result) => this.#settle(waiting, result));
    this.#running.add(carried);
    void carried.finally(() => this.#running.delete(carried));
  }

  /** Ends deliveries whose `isWanted` returns false. */
  sweep(): void {
    for (const waiting of this.#waiting.values()) if (!waiting.delivery.isWanted()) this.#end(waiting, "obsolete");
  }

  /** Gives each waiting delivery one more attempt, `graceMs` in total. */
  async close(graceMs: number): Promise<void> {
    this.#closing.abort();
    const late = new AbortController();
    const grace = sleep(graceMs, undefined, { signal: late.signal }).catch(() => undefined);
    await Promise.race([this.#waitUntilEmpty(), grace]);
    late.abort();
    this.#over.abort();
    for (const waiting of this.#waiting.values()) this.#end(waiting, "dropped");
    await this.#waitUntilEmpty();
  }

  async #waitUntilEmpty(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #end(waiting: WaitingDelivery, outcome: Outcome): void {
    // Frees the place at once, also during an attempt.
    this.#waiting.delete(waiting.delivery.id);
    waiting.ended = outcome;
    waiting.stop.abort();
  }

  #settle({ delivery }: WaitingDelivery, { answer, attempts, outcome }: Result): void {
    this.#waiting.delete(delivery.id);
    delivery.settled(outcome, attempts, answer);
  }

  async #deliver(waiting: WaitingDelivery): Promise<Result> {
    const { delivery, stop } = waiting;
    let answer = "";
    for (let attempts = 0; ;) {
      await this.#waitForTurn(stop.signal);
      if (waiting.ended) {
        this.#leave();
        return { outcome: waiting.ended, attempts, answer };
      }
      const isLast = this.#closing.signal.aborted || attempts + 1 >= this.#options.attempts;
      const tried = await this.#attempt(delivery);
      attempts += 1;
      ({ answer } = tried);
      const outcome = this.#noteOutcome(tried) ?? waiting.ended ?? (isLast ? "failed" : undefined);
      // Leaves only now, because the next delivery must know that the receiver is gone.
      this.#leave();
      if (outcome) return { outcome, attempts, answer };
      const { retryMs } = this.#options;
      const wait = backoffMs({ attempts, random: Math.random(), retryMs, retryAfterMs: tried.retryAfterMs });
      if (Date.now() + wait >= delivery.until()) return { outcome: "failed", attempts, answer };
      delivery.failed(attempts, answer, wait);
      await this.#pause(wait, stop.signal);
    }
  }

  /** Returns `undefined` if the delivery may be retried. */
  #noteOutcome({ fault, status }: Attempt): Outcome | undefined {
    if (!fault) return "delivered";
    if (status !== GONE) return undefined;
    this.#isGone = true;
    for (const other of this.#waiting.values()) this.#end(other, "gone");
    return "gone";
  }

  async #attempt(delivery: Delivery): Promise<Attempt> {
    const { key, timeoutMs, url } = this.#options.receiver;
    try {
      const message = { url, keys: [key], id: delivery.id, body: await delivery.body(), reach: "any" } as const;
      return await send(message, { timeoutMs, signal: this.#over.signal });
    } catch (error) {
      return { fault: "http_5xx", answer: `the message could not be made: ${String(error)}` };
    }
  }

  /** Resolves when another attempt may start, or the delivery was withdrawn. Call `#leave` afterwards. */
  async #waitForTurn(stopped: AbortSignal): Promise<void> {
    if (this.#underWay >= this.#options.maxConcurrent && !stopped.aborted) {
      await new Promise<void>((resolve) => {
        this.#waitingForTurn.add(resolve);
        const giveUp = () => {
          if (!this.#waitingForTurn.delete(resolve)) return;
          this.#underWay += 1;
          resolve();
        };
        stopped.addEventListener("abort", giveUp, { once: true });
      });
      return;
    }
    this.#underWay += 1;
  }

  #leave(): void {
    const [next] = this.#waitingForTurn;
    if (next && this.#underWay <= this.#options.maxConcurrent) {
      // Hands the slot to the next delivery.
      this.#waitingForTurn.delete(next);
      next();
    } else this.#underWay -= 1;
  }

  async #pause(ms: number, stopped: AbortSignal): Promise<void> {
    // Uses one `AbortController` with a strong reference: Node 20 can garbage-collect a signal of `AbortSignal.any` while the
    // signal is pending.
    const early = new AbortController();
    const wake = () => early.abort();
    const signals = [stopped, this.#closing.signal];
    for (const signal of signals) signal.addEventListener("abort", wake, { once: true });
    if (signals.some(({ aborted }) => aborted)) wake();
    await sleep(ms, undefined, { signal: early.signal, ref: false }).catch(() => undefined);
    for (const signal of signals) signal.removeEventListener("abort", wake);
  }
}
