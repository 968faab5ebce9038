import type { OutgoingMessages } from "../approvers/approver.ts";
import { constants } from "../config/constants.ts";
import { repeatEvery } from "../engine/clock.ts";
import type { Append, Logger, SessionBackend } from "../engine/ports.ts";
import { lazy } from "../mcp/lazy.ts";
import { withDeliveries, withObserver } from "../store/open.ts";
import { systemClock } from "./system-clock.ts";

/** Sends webhooks from the outbox of the store. */

export interface WebhookParts {
  readonly backend: SessionBackend;
  /** Messages of the approvers. */
  readonly outgoing: readonly OutgoingMessages[];
  readonly log: Logger;
}

export interface Webhooks {
  /** The store, which adds messages to changes and ends the deliveries before it closes. */
  readonly store: SessionBackend;
  /** Looks for deliveries that are due. */
  readonly wake: () => void;
  /** Tries once more what is due. The rest stays in the store, for the next server. Idempotent. */
  readonly close: () => Promise<void>;
}

/** Time for the last attempts, ms, while processes end. */
const LAST_ATTEMPTS_MS = 2_000;
/** Interval of the search for deliveries that other servers have left, ms. */
const LOOK_MS = 60_000;

/** Wraps a store to call `wake` after additions to the outbox by this server. */
export function withWakes(backend: SessionBackend, wake: () => void): SessionBackend {
  const { outbox } = backend;
  const onAppended = (_: string, { deliveries = [] }: Append) => {
    if (deliveries.length > 0) wake();
  };
  const add: typeof outbox.add = async (...given) => outbox.add(...given).finally(wake);
  return { ...withObserver(backend, onAppended), outbox: { ...outbox, add } };
}

/** `backend` is the result of `withWakes`. */
export async function startWebhooks({ backend, log, outgoing }: WebhookParts): Promise<Webhooks> {
  if (outgoing.length === 0) return { store: backend, wake: () => undefined, close: async () => Promise.resolve() };
  const { DeliveryWorker } = await import("../webhooks/worker.ts");
  const { notifyRetryMs: retryMs, notifyTimeoutMs: timeoutMs } = constants();
  const byTarget = new Map(outgoing.map((messages) => [messages.target, messages]));
  const worker = new DeliveryWorker({
    outbox: backend.outbox,
    log,
    operators: new Map(outgoing.map(({ receiver, target }) => [target, receiver])),
    subscriber: undefined,
    timeoutMs,
    retryMs,
    onSettled: (delivery, outcome) => byTarget.get(delivery.target)?.onSettled(delivery, outcome),
  });
  worker.start();
  const stopLooking = repeatEvery(systemClock, LOOK_MS, async () => Promise.resolve(worker.wake()));
  const close = lazy(async () => {
    await stopLooking();
    await worker.close(LAST_ATTEMPTS_MS);
  });
  const added = withDeliveries(backend, (sessionId, change) =>
    outgoing.flatMap(({ deliveriesOf }) => deliveriesOf(sessionId, change)),
  );
  const closeStore = async () => {
    await close();
    await backend.close();
  };
  return { store: { ...added, close: closeStore }, wake: () => worker.wake(), close };
}
