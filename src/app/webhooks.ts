import type { OutgoingMessages } from "../approvers/approver.ts";
import { constants } from "../config/constants.ts";
import type { WebhookReach } from "../domain/feed.ts";
import type { JsonObject } from "../domain/json.ts";
import { repeatEvery } from "../engine/clock.ts";
import { type Append, type Logger, messageOf, type Outbox, type SessionBackend } from "../engine/ports.ts";
import type { WebhookParts } from "../mcp/events/parts.ts";
import { lazy } from "../mcp/lazy.ts";
import { wakes } from "../store/feed-cursor.ts";
import { withDeliveries, withObserver } from "../store/open.ts";
import type { Receiver } from "../webhooks/send.ts";
import type { DeliveryWorker } from "../webhooks/worker.ts";
import { systemClock } from "./system-clock.ts";

/** Sends webhooks from the outbox of the store: those of approvers, and those that callers have named for events. */

export interface WebhookSources {
  /** The result of `withWakes`. */
  readonly backend: SessionBackend;
  /** Messages of the approvers. */
  readonly outgoing: readonly OutgoingMessages[];
  /** Webhooks of callers that this server sends to; `off` for none. */
  readonly reach: WebhookReach | "off";
  /** Returns a function that masks the secrets of the session. */
  readonly maskOf: (sessionId: string) => (fields: JsonObject) => JsonObject;
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
  const onAppended = (_: string, change: Append) => {
    // Entries of the feed add deliveries for the subscriptions that they match.
    if (wakes(change)) wake();
  };
  const add: typeof outbox.add = async (...given) => outbox.add(...given).finally(wake);
  const subscribe: typeof outbox.subscribe = async (...given) => outbox.subscribe(...given).finally(wake);
  return { ...withObserver(backend, onAppended), outbox: { ...outbox, add, subscribe } };
}

/** Starts the worker once a delivery is due. Until then, a look costs one read of the store. */
export function startWebhooks(sources: WebhookSources): Webhooks {
  const { backend, log, outgoing, reach } = sources;
  if (outgoing.length === 0 && reach === "off") {
    return { store: backend, wake: () => undefined, close: async () => Promise.resolve() };
  }
  const scope = { targets: outgoing.map(({ target }) => target), hasSubscribers: reach !== "off" };
  let worker: DeliveryWorker | undefined;
  let isClosing = false;
  const start = lazy(async () => {
    worker = await createWorker(sources);
    worker.start();
  });
  const look = async () => {
    if (worker) worker.wake();
    else if ((await backend.outbox.dueInMs(scope)) !== undefined && !isClosing) await start();
  };
  const lookSafely = async () =>
    look().catch((error: unknown) => log.warn("the store was not asked for webhooks", { error: messageOf(error) }));
  const stopLooking = repeatEvery(systemClock, LOOK_MS, lookSafely);
  const close = lazy(async () => {
    isClosing = true;
    await stopLooking();
    await worker?.close(LAST_ATTEMPTS_MS);
  });
  const added = withDeliveries(backend, (sessionId, change) =>
    outgoing.flatMap(({ deliveriesOf }) => deliveriesOf(sessionId, change)),
  );
  const closeStore = async () => {
    await close();
    await backend.close();
  };
  return { store: { ...added, close: closeStore }, wake: () => void lookSafely(), close };
}

const importWorker = async () => import("../webhooks/worker.ts");
const importReceivers = async () => import("../webhooks/receivers.ts");
const importPresent = async () => import("../mcp/events/present.ts");

/** Preloads all modules by the same `import()` calls as later, because Node looks for a file again for each importing module. */
export async function preloadWebhooks(): Promise<void> {
  await Promise.all([importWorker(), importReceivers(), importPresent()]);
}

async function createWorker({ backend, log, maskOf, outgoing, reach }: WebhookSources): Promise<DeliveryWorker> {
  const { DeliveryWorker: Worker } = await importWorker();
  const { notifyRetryMs: retryMs, notifyTimeoutMs: timeoutMs } = constants();
  const byTarget = new Map(outgoing.map((messages) => [messages.target, messages]));
  return new Worker({
    outbox: backend.outbox,
    log,
    operators: new Map(outgoing.map(({ receiver, target }) => [target, receiver])),
    subscriber: reach === "off" ? undefined : lateReceiver({ backend, maskOf, reach }),
    timeoutMs,
    retryMs,
    onSettled: (delivery, outcome) => byTarget.get(delivery.target)?.onSettled(delivery, outcome),
  });
}

/** Loads the presentation of events with the first delivery. */
function lateReceiver({
  backend,
  maskOf,
  reach,
}: Pick<WebhookSources, "backend" | "maskOf"> & { readonly reach: WebhookReach }): Receiver {
  const receiver = lazy(async () => {
    const [{ createPresent }, { subscriberReceiver }] = await Promise.all([importPresent(), importReceivers()]);
    return subscriberReceiver({ outbox: backend.outbox, present: createPresent({ maskOf, store: backend }), reach });
  });
  return async (delivery) => (await receiver())(delivery);
}

/** Returns what `events/subscribe` needs. */
export async function subscribing(outbox: Outbox, reach: WebhookReach): Promise<WebhookParts> {
  const { Challenges, keyOf, urlProblem } = await importReceivers();
  const challenges = new Challenges({ reach, timeoutMs: constants().notifyTimeoutMs });
  return {
    outbox,
    keyOf,
    urlProblem: (url) => urlProblem(url, reach),
    challenge: async (candidate) => challenges.ask(candidate),
  };
}
