import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { DeliveryQueue, type Delivery, type Outcome } from "../../src/approvers/webhook/queue.ts";
import { SECRET, startReceiver, type ReceiverServer } from "../kit/clients/webhook-receiver.ts";

const KEY = Buffer.from(SECRET.slice("whsec_".length), "base64");

let receiver: ReceiverServer;
afterEach(async () => receiver.close());

interface TestDelivery {
  readonly delivery: Delivery;
  readonly settled: Promise<{ outcome: Outcome; attempts: number; answer: string }>;
  /** Makes `isWanted` return false, as if the request had been answered. */
  readonly makeObsolete: () => void;
}

let count = 0;

function testDelivery({ until = Number.POSITIVE_INFINITY } = {}): TestDelivery {
  count += 1;
  const id = `msg_${String(count)}`;
  let isWanted = true;
  const { promise: settled, resolve } = deferred<{ outcome: Outcome; attempts: number; answer: string }>();
  return {
    settled,
    makeObsolete: () => void (isWanted = false),
    delivery: {
      id,
      body: async () => Promise.resolve(JSON.stringify({ id })),
      isWanted: () => isWanted,
      until: () => until,
      failed: () => undefined,
      settled: (outcome, attempts, answer) => resolve({ outcome, attempts, answer }),
    },
  };
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}

const OPTIONS = { attempts: 5, retryMs: 10, maxWaiting: 100, maxConcurrent: 4 };

function queueOf({ timeoutMs = 5_000, url = receiver.url, ...over }: Record<string, unknown> = {}): DeliveryQueue {
  const at = { url: String(url), key: KEY, timeoutMs: Number(timeoutMs) };
  return new DeliveryQueue({ ...OPTIONS, ...over, receiver: at });
}

/** Responds with `statuses` in order, and then repeats the last. */
async function respondWith(...statuses: number[]): Promise<void> {
  receiver = await startReceiver(({ response }, index) => {
    response
      .writeHead(statuses[Math.min(index, statuses.length - 1)] ?? 200, { location: `${receiver.url}/other` })
      .end();
  });
}

describe("a delivery", () => {
  it("a delivery is retried until a 2xx response, each time with the same id", async () => {
    await respondWith(500, 404, 302, 202);
    const { delivery: sent, settled } = testDelivery();
    queueOf().add(sent);
    await expect(settled).resolves.toEqual({ outcome: "delivered", attempts: 4, answer: "status 202" });
    // A redirect is a failed attempt and is not followed.
    expect(receiver.got.map(({ headers }) => headers["webhook-id"])).toEqual(Array.from({ length: 4 }, () => sent.id));
  });

  it("a delivery fails after its last attempt, or if the next attempt would start after `until`", async () => {
    await respondWith(503);
    const [often, late] = [testDelivery(), testDelivery({ until: Date.now() })];
    const queue = queueOf({ attempts: 3 });
    queue.add(often.delivery);
    queue.add(late.delivery);
    await expect(often.settled).resolves.toEqual({ outcome: "failed", attempts: 3, answer: "status 503" });
    await expect(late.settled).resolves.toEqual({ outcome: "failed", attempts: 1, answer: "status 503" });
  });

  it("a delivery fails with a short reason if the connection is refused", async () => {
    await respondWith(200);
    const { url } = receiver;
    await receiver.close();
    receiver = await startReceiver();
    const { delivery: sent, settled } = testDelivery();
    queueOf({ url, attempts: 2 }).add(sent);
    await expect(settled).resolves.toEqual({ outcome: "failed", attempts: 2, answer: "ECONNREFUSED" });
  });

  it("no delivery is attempted after 410 Gone", async () => {
    await respondWith(410);
    const [first, second] = [testDelivery(), testDelivery()];
    const queue = queueOf({ maxConcurrent: 1 });
    queue.add(first.delivery);
    queue.add(second.delivery);
    await expect(first.settled).resolves.toMatchObject({ outcome: "gone", attempts: 1 });
    await expect(second.settled).resolves.toMatchObject({ outcome: "gone", attempts: 0 });
    const later = testDelivery();
    queue.add(later.delivery);
    await expect(later.settled).resolves.toMatchObject({ outcome: "gone", attempts: 0 });
    expect(receiver.got).toHaveLength(1);
  });

  it("a delivery is not retried after it has become obsolete", async () => {
    await respondWith(500);
    const { delivery: sent, settled, makeObsolete } = testDelivery();
    const queue = queueOf({ retryMs: 600_000 });
    queue.add(sent);
    await receiver.next();
    makeObsolete();
    queue.sweep();
    await expect(settled).resolves.toMatchObject({ outcome: "obsolete", attempts: 1 });
  });

  it("a delivery waits for a response no longer than its timeout", async () => {
    receiver = await startReceiver(() => undefined);
    const { delivery: sent, settled } = testDelivery();
    queueOf({ timeoutMs: 50, attempts: 2 }).add(sent);
    await expect(settled).resolves.toEqual({ outcome: "failed", attempts: 2, answer: "no answer in time" });
  });

  it("at most `maxConcurrent` attempts run at once; an attempt completes even if a full queue drops its delivery", async () => {
    const held: ServerResponse[] = [];
    receiver = await startReceiver(({ response }) => void held.push(response));
    const all = Array.from({ length: 5 }, () => testDelivery());
    const queue = queueOf({ maxConcurrent: 2, maxWaiting: 4 });
    for (const each of all.slice(0, 2)) queue.add(each.delivery);
    await receiver.next();
    await receiver.next();
    for (const each of all.slice(2)) queue.add(each.delivery);
    expect(held).toHaveLength(2);
    for (const response of held.splice(0)) response.end();
    await receiver.next();
    await receiver.next();
    for (const response of held.splice(0)) response.end();
    const last = await receiver.next();
    last.response.end();
    const outcomes = await Promise.all(all.map(async ({ settled }) => (await settled).outcome));
    // The queue dropped the first delivery during its attempt, which still completed.
    expect(outcomes).toEqual(["delivered", "delivered", "delivered", "delivered", "delivered"]);
  });

  it("a full queue drops the oldest waiting delivery", async () => {
    receiver = await startReceiver(() => undefined);
    const all = Array.from({ length: 4 }, () => testDelivery());
    const queue = queueOf({ maxConcurrent: 1, maxWaiting: 2 });
    for (const each of all) queue.add(each.delivery);
    await expect(all[1]?.settled).resolves.toMatchObject({ outcome: "dropped", attempts: 0 });
    await queue.close(0);
    await expect(all[3]?.settled).resolves.toMatchObject({ outcome: "dropped" });
  });
});

describe("deliveries when the server stops", () => {
  it("when the server stops, a waiting delivery is retried once, without delay", async () => {
    await respondWith(500, 200);
    const { delivery: sent, settled } = testDelivery();
    const queue = queueOf({ retryMs: 600_000 });
    queue.add(sent);
    await receiver.next();
    await queue.close(5_000);
    await expect(settled).resolves.toMatchObject({ outcome: "delivered", attempts: 2 });
  });

  it("when the server stops, a delivery without a response within the grace period is aborted", async () => {
    receiver = await startReceiver(() => undefined);
    const { delivery: sent, settled } = testDelivery();
    const queue = queueOf();
    queue.add(sent);
    const { response } = await receiver.next();
    const closed = once(response, "close");
    await queue.close(10);
    await expect(settled).resolves.toMatchObject({ outcome: "dropped", attempts: 1 });
    await closed;
  });
});
