import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { DeliveryQueue, type Delivery, type Outcome } from "../../src/approvers/webhook/queue.ts";
import { SECRET, startReceiver, type ReceiverServer } from "../kit/clients/webhook-receiver.ts";

const KEY = Buffer.from(SECRET.slice("whsec_".length), "base64");

let receiver: ReceiverServer;
afterEach(async () => receiver.close());

interface TestLetter {
  readonly letter: Delivery;
  readonly settled: Promise<{ outcome: Outcome; attempts: number; answer: string }>;
  /** Makes `isWanted` return false, as after an answer to the request. */
  readonly unwant: () => void;
}

let count = 0;

function letter({ until = Number.POSITIVE_INFINITY } = {}): TestLetter {
  count += 1;
  const id = `msg_${String(count)}`;
  let isWanted = true;
  const { promise: settled, resolve } = deferred<{ outcome: Outcome; attempts: number; answer: string }>();
  return {
    settled,
    unwant: () => void (isWanted = false),
    letter: {
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

const OPTIONS = { attempts: 5, retryMs: 10, most: 100, abreast: 4 };

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
    const { letter: sent, settled } = letter();
    queueOf().add(sent);
    await expect(settled).resolves.toEqual({ outcome: "delivered", attempts: 4, answer: "status 202" });
    // A redirect is a failed attempt and is not followed.
    expect(receiver.got.map(({ headers }) => headers["webhook-id"])).toEqual(Array.from({ length: 4 }, () => sent.id));
  });

  it("a delivery fails after its last attempt, or if the next attempt would come too late", async () => {
    await respondWith(503);
    const [often, late] = [letter(), letter({ until: Date.now() })];
    const queue = queueOf({ attempts: 3 });
    queue.add(often.letter);
    queue.add(late.letter);
    await expect(often.settled).resolves.toEqual({ outcome: "failed", attempts: 3, answer: "status 503" });
    await expect(late.settled).resolves.toEqual({ outcome: "failed", attempts: 1, answer: "status 503" });
  });

  it("a delivery fails with a short reason if the connection is refused", async () => {
    await respondWith(200);
    const { url } = receiver;
    await receiver.close();
    receiver = await startReceiver();
    const { letter: sent, settled } = letter();
    queueOf({ url, attempts: 2 }).add(sent);
    await expect(settled).resolves.toEqual({ outcome: "failed", attempts: 2, answer: "ECONNREFUSED" });
  });

  it("no delivery is attempted after 410 Gone", async () => {
    await respondWith(410);
    const [first, second] = [letter(), letter()];
    const queue = queueOf({ abreast: 1 });
    queue.add(first.letter);
    queue.add(second.letter);
    await expect(first.settled).resolves.toMatchObject({ outcome: "gone", attempts: 1 });
    await expect(second.settled).resolves.toMatchObject({ outcome: "gone", attempts: 0 });
    const later = letter();
    queue.add(later.letter);
    await expect(later.settled).resolves.toMatchObject({ outcome: "gone", attempts: 0 });
    expect(receiver.got).toHaveLength(1);
  });

  it("a delivery is not retried after it has become obsolete", async () => {
    await respondWith(500);
    const { letter: sent, settled, unwant } = letter();
    const queue = queueOf({ retryMs: 600_000 });
    queue.add(sent);
    await receiver.next();
    unwant();
    queue.sweep();
    await expect(settled).resolves.toMatchObject({ outcome: "obsolete", attempts: 1 });
  });

  it("a delivery waits for a response no longer than its timeout", async () => {
    receiver = await startReceiver(() => undefined);
    const { letter: sent, settled } = letter();
    queueOf({ timeoutMs: 50, attempts: 2 }).add(sent);
    await expect(settled).resolves.toEqual({ outcome: "failed", attempts: 2, answer: "no answer in time" });
  });

  it("at most 2 deliveries run at once; a full queue drops the oldest, whose running attempt completes", async () => {
    const held: ServerResponse[] = [];
    receiver = await startReceiver(({ response }) => void held.push(response));
    const all = Array.from({ length: 5 }, () => letter());
    const queue = queueOf({ abreast: 2, most: 4 });
    for (const each of all.slice(0, 2)) queue.add(each.letter);
    await receiver.next();
    await receiver.next();
    for (const each of all.slice(2)) queue.add(each.letter);
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
    const all = Array.from({ length: 4 }, () => letter());
    const queue = queueOf({ abreast: 1, most: 2 });
    for (const each of all) queue.add(each.letter);
    await expect(all[1]?.settled).resolves.toMatchObject({ outcome: "dropped", attempts: 0 });
    await queue.close(0);
    await expect(all[3]?.settled).resolves.toMatchObject({ outcome: "dropped" });
  });
});

describe("deliveries at the end of the server", () => {
  it("at the end of the server, a waiting delivery is retried once, at once", async () => {
    await respondWith(500, 200);
    const { letter: sent, settled } = letter();
    const queue = queueOf({ retryMs: 600_000 });
    queue.add(sent);
    await receiver.next();
    await queue.close(5_000);
    await expect(settled).resolves.toMatchObject({ outcome: "delivered", attempts: 2 });
  });

  it("at the end of the server, a delivery without a response within the grace period is aborted", async () => {
    receiver = await startReceiver(() => undefined);
    const { letter: sent, settled } = letter();
    const queue = queueOf();
    queue.add(sent);
    const { response } = await receiver.next();
    const closed = once(response, "close");
    await queue.close(10);
    await expect(settled).resolves.toMatchObject({ outcome: "dropped", attempts: 1 });
    await closed;
  });
});
