import { setTimeout as sleep } from "node:timers/promises";
import {
  type Delivery,
  type DeliveryResult,
  type DeliveryScope,
  isOutage,
  type Logger,
  messageOf,
  type Outbox,
} from "../engine/ports.ts";
import { type Attempt, type OutgoingMessage, type Receiver, send } from "./send.ts";
import { backoffMs } from "./signing.ts";
import { TargetQueue } from "./target-queue.ts";

/**
 * End of a delivery. `failed`: no attempt succeeded in time. `gone`: the receiver does not want it (410). `obsolete`: withdrawn,
 * or there is no message any more.
 */
export type Outcome = "delivered" | "failed" | "gone" | "obsolete";

interface WorkerOptions {
  readonly outbox: Pick<Outbox, "dueInMs" | "settle" | "take" | "withdraw">;
  readonly log: Pick<Logger, "debug" | "warn">;
  /** Receivers of the operator, by target. */
  readonly operators: ReadonlyMap<string, Receiver>;
  /** Receiver of all subscriptions. `undefined`: this process serves none. */
  readonly subscriber: Receiver | undefined;
  /** Time limit of an attempt, ms. */
  readonly timeoutMs: number;
  /** Delay before the second attempt, ms. */
  readonly retryMs: number;
  /** Called once per delivery that has ended in this process. `answer` is in words of this process. */
  readonly onSettled: (
    delivery: Delivery,
    outcome: Outcome,
    result: { readonly attempts: number; readonly answer: string },
  ) => void;
}

/** Time of a hold beyond its attempts, for writes to the store, ms. */
const HOLD_MARGIN_MS = 5_000;
/** Longest sleep while a delivery waits, ms, because the clock of the system may be set forward. */
const MAX_SLEEP_MS = 60_000;
/** Time between looks while a target is full, ms: `dueInMs` counts its deliveries, too. */
const FULL_LOOK_MS = 1_000;
/** Delay before a failed call of the store is repeated, ms. */
const AGAIN_MS = 1_000;
const AGAIN_AFTER_FAULT_MS = 30_000;

const GONE = 410;
const TOO_LARGE = 413;

interface Ended {
  readonly result: DeliveryResult;
  readonly attempt: Attempt;
}

/**
 * Sends the deliveries of the outbox and records the results. Every server of a store has one; each delivery is held by one at
 * a time, and comes due again if its holder dies.
 */
export class DeliveryWorker {
  readonly #options: WorkerOptions;
  readonly #queue = new TargetQueue<Delivery>(
    async (delivery) => this.#deliver(delivery),
    () => this.wake(),
  );
  /** Targets of the operator whose receiver wants no further deliveries. */
  readonly #gone = new Set<string>();
  /** Aborted at the end of the grace period: all attempts stop. */
  readonly #over = new AbortController();
  /** Aborted when the worker closes. */
  readonly #closing = new AbortController();
  #endSleep = (): void => undefined;
  #running: Promise<unknown> | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Looks for deliveries that are due. Call after additions. */
  wake(): void {
    this.#endSleep();
  }

  get #scope(): DeliveryScope {
    const { operators, subscriber } = this.#options;
    return { targets: [...operators.keys()], hasSubscribers: subscriber !== undefined };
  }

  /** Tries once more what is due now, `graceMs` in total. The rest stays in the store, for the next server. */
  async close(graceMs: number): Promise<void> {
    this.#closing.abort();
    this.wake();
    if (!this.#running) return;
    const late = new AbortController();
    const last = this.#sendLast();
    await Promise.race([last, pause(graceMs, late.signal)]);
    late.abort();
    this.#over.abort();
    await last;
  }

  async #sendLast(): Promise<void> {
    await this.#running;
    // Takes nothing after the grace: the next server sends what comes due.
    if (!this.#over.signal.aborted) await this.#take().catch(() => undefined);
    await this.#queue.idle();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      // Created before the look, so that no change during the look is missed.
      const changed = new Promise<void>((resolve) => (this.#endSleep = resolve));
      try {
        const waitMs = await this.#take();
        await this.#sleep(waitMs, changed);
      } catch (error) {
        await this.#pauseAfter(error);
      }
    }
  }

  /** Takes what is due and begins to send it. Resolves with the time until more is due, ms; `undefined` if nothing waits. */
  async #take(): Promise<number | undefined> {
    const { outbox, timeoutMs } = this.#options;
    for (;;) {
      const limit = this.#queue.free;
      // Continues once a slot is free, since the queue wakes the loop.
      if (limit === 0) return undefined;
      const holdMs = this.#queue.rounds * timeoutMs + HOLD_MARGIN_MS;
      const { isOwned, owners, targets: except } = this.#queue.full;
      const { hasSubscribers, targets } = this.#scope;
      const scope = { targets, hasSubscribers: hasSubscribers && !isOwned };
      const taken = await outbox.take({ ...scope, except, exceptOwners: owners, limit, holdMs });
      for (const delivery of taken) this.#queue.add({ target: delivery.target, owner: delivery.owner }, delivery);
      if (taken.length < limit) return this.#isFull ? FULL_LOOK_MS : outbox.dueInMs(this.#scope);
    }
  }

  get #isFull(): boolean {
    const { isOwned, owners, targets } = this.#queue.full;
    return isOwned || owners.length > 0 || targets.length > 0;
  }

  async #sleep(waitMs: number | undefined, changed: Promise<void>): Promise<void> {
    if (waitMs === undefined) return changed;
    const early = new AbortController();
    await Promise.race([pause(Math.min(waitMs, MAX_SLEEP_MS), early.signal), changed]);
    early.abort();
  }

  async #pauseAfter(error: unknown): Promise<void> {
    const { log } = this.#options;
    if (this.#closing.signal.aborted) return;
    const isPassing = isOutage(error);
    if (!isPassing) log.warn("deliveries to webhooks wait for the store", { error: messageOf(error) });
    const ms = isPassing ? AGAIN_MS : AGAIN_AFTER_FAULT_MS;
    await pause(ms, this.#closing.signal);
  }

  async #deliver(delivery: Delivery): Promise<void> {
    try {
      const message = await this.#messageOf(delivery);
      if (message) await this.#settle(delivery, await this.#attempt(delivery, message));
      else await this.#withdraw(delivery);
    } catch (error) {
      // The delivery comes due again at the end of its hold.
      this.#options.log.debug("a webhook delivery could not be settled", {
        ...about(delivery),
        error: messageOf(error),
      });
    }
  }

  async #messageOf(delivery: Delivery): Promise<OutgoingMessage | undefined> {
    const { operators, subscriber } = this.#options;
    const receiver = operators.get(delivery.target) ?? subscriber;
    return receiver && this.#throughOutages(async () => receiver(delivery));
  }

  async #attempt(delivery: Delivery, message: OutgoingMessage): Promise<Ended> {
    const { operators, retryMs, timeoutMs } = this.#options;
    if (this.#gone.has(delivery.target)) {
      const attempt: Attempt = { fault: "http_4xx", status: GONE, answer: "an earlier answer was 410" };
      return { attempt, result: { is: "abandoned", fault: "http_4xx" } };
    }
    const attempt = await send(message, { timeoutMs, signal: this.#over.signal });
    const { fault, retryAfterMs, status } = attempt;
    if (!fault) return { attempt, result: { is: "delivered" } };
    if (status === GONE && operators.has(delivery.target)) this.#gone.add(delivery.target);
    if (status === GONE || status === TOO_LARGE) return { attempt, result: { is: "abandoned", fault } };
    const attempts = delivery.attempts + 1;
    // An attempt that the end of this server has stopped says nothing about the receiver: the next server tries at once.
    const afterMs = this.#over.signal.aborted
      ? 0
      : backoffMs({ attempts, random: Math.random(), retryMs, retryAfterMs });
    return { attempt, result: { is: "retry", afterMs, fault } };
  }

  async #settle(delivery: Delivery, { attempt, result }: Ended): Promise<void> {
    const { log, outbox } = this.#options;
    const end = await this.#throughOutages(async () => outbox.settle(delivery, result));
    const attempts = delivery.attempts + 1;
    const { answer } = attempt;
    if (end === "retry") {
      const waitMs = result.is === "retry" ? result.afterMs : 0;
      log.debug("a webhook delivery failed and will be retried", { ...about(delivery), attempts, answer, waitMs });
      return;
    }
    if (end === "missing") return this.#end(delivery, "obsolete", { attempts, answer });
    const failed = attempt.status === GONE ? "gone" : "failed";
    this.#end(delivery, end === "delivered" ? "delivered" : failed, { attempts, answer });
  }

  /** Ends a delivery without a message. Its receiver has done nothing wrong, so that no fault is recorded. */
  async #withdraw(delivery: Delivery): Promise<void> {
    const { messageId, sessionId, target } = delivery;
    await this.#throughOutages(async () => this.#options.outbox.withdraw(sessionId, target, messageId));
    this.#end(delivery, "obsolete", { attempts: delivery.attempts, answer: "" });
  }

  #end(delivery: Delivery, outcome: Outcome, result: { attempts: number; answer: string }): void {
    const { log, onSettled } = this.#options;
    const isFine = outcome === "delivered" || outcome === "obsolete";
    log[isFine ? "debug" : "warn"]("a webhook delivery ended", { ...about(delivery), outcome, ...result });
    onSettled(delivery, outcome, result);
  }

  /** Repeats `work` while the store cannot be reached, until the worker ends. */
  async #throughOutages<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!isOutage(error) || this.#over.signal.aborted) throw error;
        await pause(AGAIN_MS, this.#over.signal);
      }
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
}

/** Describes a delivery for the log. */
function about({ messageId, name, sessionId, target }: Delivery): Record<string, string> {
  return { delivery: messageId, type: name, sessionId, target };
}
