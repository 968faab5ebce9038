import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Delivery, NewDelivery, Outbox, SessionBackend } from "../../src/engine/ports.ts";
import type { Receiver } from "../../src/webhooks/send.ts";
import { DeliveryWorker, type Outcome } from "../../src/webhooks/worker.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { memoryStore } from "../kit/store/memory.ts";

const KEY = Buffer.from("a key of the tests, 32 bytes xx.");
const SESSION = "session-1";
const ONE = { targets: ["one"], hasSubscribers: false, except: [] };

interface Got {
  readonly id: string;
  readonly path: string;
  readonly response: ServerResponse;
}

/** A receiver on loopback, a store and the workers of a test. */
class Scene {
  readonly clock = new ManualClock();
  readonly store: SessionBackend;
  readonly got: Got[] = [];
  readonly ends: (readonly [string, Outcome, number, string])[] = [];
  answer: (got: Got) => void = ({ response }) => void response.end();
  #port = 0;
  readonly #workers: DeliveryWorker[] = [];
  readonly #server = createServer((request, response) => {
    request.resume().on("end", () => {
      const got = { id: String(request.headers["webhook-id"]), path: request.url ?? "", response };
      this.got.push(got);
      this.answer(got);
    });
  });

  private constructor() {
    this.store = memoryStore(this.clock).connect("node-1");
  }

  static async begin(): Promise<Scene> {
    const scene = new Scene();
    await scene.up();
    scene.#port = (scene.#server.address() as AddressInfo).port;
    return scene;
  }

  async add(...deliveries: Partial<NewDelivery>[]): Promise<void> {
    const whole = { target: "one", messageId: "msg_1", eventId: 1, name: "turn.ended" };
    const { outbox } = this.store;
    await outbox.add(
      SESSION,
      deliveries.map((each) => ({ ...whole, until: this.clock.tick() + 86_400_000, ...each })),
    );
    this.wake();
  }

  /** Sends to a path named like the target. */
  receiver: Receiver = async ({ messageId: id, target }: Delivery) => {
    const url = `http://127.0.0.1:${String(this.#port)}/${target}`;
    return Promise.resolve({ url, keys: [KEY], id, body: "{}", reach: "any" });
  };

  start(over: { outbox?: Outbox; receiver?: Receiver; timeoutMs?: number } = {}): DeliveryWorker {
    const { outbox = this.store.outbox, receiver = this.receiver, timeoutMs = 5_000 } = over;
    const worker = new DeliveryWorker({
      outbox,
      log: { debug: () => undefined, warn: () => undefined },
      operators: new Map(["one", "two"].map((target) => [target, receiver])),
      subscriber: undefined,
      timeoutMs,
      retryMs: 1_000,
      onSettled: ({ messageId }, outcome, { answer, attempts }) => {
        this.ends.push([messageId, outcome, attempts, answer]);
      },
    });
    this.#workers.push(worker);
    worker.start();
    return worker;
  }

  async dueInMs(): Promise<number | undefined> {
    return this.store.outbox.dueInMs({ targets: ["one", "two"], hasSubscribers: false });
  }

  wake(): void {
    for (const worker of this.#workers) worker.wake();
  }

  async down(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  async up(): Promise<void> {
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  async isDueWithin(from: number, to: number): Promise<boolean> {
    const due = (await this.dueInMs()) ?? -1;
    return due >= from && due <= to;
  }

  async end(): Promise<void> {
    await Promise.all(this.#workers.map(async (worker) => worker.close(0)));
    this.#server.close();
    this.#server.closeAllConnections();
    await this.store.close();
  }
}

let scene: Scene;
afterEach(async () => scene.end());

const respond =
  (...statuses: number[]) =>
  ({ response }: Got): void =>
    void response.writeHead(statuses.length > 1 ? (statuses.shift() ?? 200) : (statuses[0] ?? 200)).end();

describe("the worker of webhooks", () => {
  it("the worker of webhooks sends what waits at its start and what is added later", async () => {
    scene = await Scene.begin();
    await scene.add({ messageId: "before" });
    scene.start();
    await expect.poll(() => scene.ends).toEqual([["before", "delivered", 1, "status 200"]]);
    await scene.add({ messageId: "after", target: "two" });
    await expect.poll(() => scene.ends[1]).toEqual(["after", "delivered", 1, "status 200"]);
    expect(scene.got.map(({ id, path }) => [id, path])).toEqual([
      ["before", "/one"],
      ["after", "/two"],
    ]);
    await expect(scene.dueInMs()).resolves.toBeUndefined();
  });

  it("a failed delivery is stored with its delay and sent again under the same id, also by the next server", async () => {
    scene = await Scene.begin();
    scene.answer = respond(503, 503, 200);
    await scene.add({});
    const first = scene.start();
    await expect.poll(async () => scene.isDueWithin(750, 1_250)).toBe(true);
    await first.close(0);
    expect([scene.got.length, scene.ends]).toEqual([1, []]);
    scene.clock.advance(1_250);
    const second = scene.start();
    await expect.poll(async () => scene.isDueWithin(3_000, 5_000)).toBe(true);
    await second.close(0);
    scene.clock.advance(5_000);
    scene.start();
    await expect.poll(() => scene.ends).toEqual([["msg_1", "delivered", 3, "status 200"]]);
    expect(new Set(scene.got.map(({ id }) => id))).toEqual(new Set(["msg_1"]));
  });

  it("a receiver that was down for an hour gets the event once it is back, at most ten minutes later, under its id", async () => {
    scene = await Scene.begin();
    await scene.down();
    await scene.add({});
    scene.start();
    const passTo = async (end: number) => {
      while (scene.clock.tick() < end) {
        // An attempt is under way, or holds the delivery for longer than any delay.
        await expect.poll(async () => scene.isDueWithin(1, 750_000)).toBe(true);
        scene.clock.advance((await scene.dueInMs()) ?? 0);
        scene.wake();
        await expect.poll(async () => scene.isDueWithin(1, 750_000)).toBe(true);
      }
    };
    await passTo(3_600_000);
    await scene.up();
    scene.clock.advance(750_000);
    scene.wake();
    await expect.poll(() => scene.ends.map(([id, outcome]) => [id, outcome])).toEqual([["msg_1", "delivered"]]);
    expect(scene.got.map(({ id }) => id)).toEqual(["msg_1"]);
  });

  it("a delivery taken by a killed server comes due again after its hold", async () => {
    scene = await Scene.begin();
    await scene.add({});
    // Takes the delivery as a server does that is killed before it sends.
    await scene.store.outbox.take({ ...ONE, limit: 1, holdMs: 30_000 });
    const worker = scene.start();
    await worker.close(1_000);
    expect(scene.got).toEqual([]);
    scene.clock.advance(30_000);
    scene.start();
    await expect.poll(() => scene.ends).toEqual([["msg_1", "delivered", 2, "status 200"]]);
  });

  it("413 ends a delivery, and 410 of an operator's receiver ends all of its deliveries but none of another", async () => {
    scene = await Scene.begin();
    scene.answer = (got) => respond(got.id === "large" ? 413 : got.path === "/one" ? 410 : 200)(got);
    await scene.add({ messageId: "large" });
    scene.start();
    await expect.poll(() => scene.ends.splice(0)).toEqual([["large", "failed", 1, "status 413"]]);
    await scene.add({ messageId: "gone" });
    await expect.poll(() => scene.ends.splice(0)).toEqual([["gone", "gone", 1, "status 410"]]);
    await scene.add({ messageId: "later" }, { messageId: "other", target: "two" });
    await expect.poll(() => scene.ends.length).toBe(2);
    expect(scene.ends.toSorted(([one], [other]) => one.localeCompare(other))).toEqual([
      ["later", "gone", 1, "an earlier answer was 410"],
      ["other", "delivered", 1, "status 200"],
    ]);
    expect(scene.got.map(({ id }) => id)).toEqual(["large", "gone", "other"]);
  });

  it("at most 4 attempts to a target and 16 in all are under way, and a silent receiver does not hold up another", async () => {
    scene = await Scene.begin();
    const silent: Got[] = [];
    scene.answer = (got) => (got.path === "/one" ? void silent.push(got) : void got.response.end());
    await scene.add(...Array.from({ length: 10 }, (_, n) => ({ messageId: `one-${String(n)}` })));
    scene.start();
    await expect.poll(() => silent.length).toBe(4);
    await scene.add({ messageId: "two-1", target: "two" });
    await expect.poll(() => scene.ends).toEqual([["two-1", "delivered", 1, "status 200"]]);
    expect(silent).toHaveLength(4);
    scene.answer = respond(200);
    for (const { response } of silent) response.end();
    await expect.poll(() => scene.ends.length).toBe(11);
  });

  it("a delivery without a message any more is withdrawn and ends as obsolete", async () => {
    scene = await Scene.begin();
    await scene.add({});
    scene.start({ receiver: async () => Promise.resolve(undefined) });
    await expect.poll(() => scene.ends).toEqual([["msg_1", "obsolete", 0, ""]]);
    expect([await scene.dueInMs(), scene.got]).toEqual([undefined, []]);
  });

  it("a delivery withdrawn during its attempt ends as obsolete", async () => {
    scene = await Scene.begin();
    scene.answer = () => undefined;
    await scene.add({});
    scene.start();
    await expect.poll(() => scene.got.length).toBe(1);
    await scene.store.outbox.withdraw(SESSION, "one", "msg_1");
    scene.got[0]?.response.writeHead(500).end();
    await expect.poll(() => scene.ends).toEqual([["msg_1", "obsolete", 1, "status 500"]]);
  });

  it("a delivery ends as failed if its next attempt would come too late", async () => {
    scene = await Scene.begin();
    scene.answer = respond(500);
    await scene.add({ until: scene.clock.tick() + 500 });
    scene.start();
    await expect.poll(() => scene.ends).toEqual([["msg_1", "failed", 1, "status 500"]]);
  });

  it("an outage of the store is waited out: nothing is lost, and the result is recorded afterwards", async () => {
    scene = await Scene.begin();
    const { outbox } = scene.store;
    let faults = 2;
    const failing = async <T>(work: () => Promise<T>): Promise<T> => {
      faults -= 1;
      if (faults >= 0) throw Object.assign(new Error("the database does not answer"), { isOutage: true });
      return work();
    };
    await scene.add({});
    scene.start({
      outbox: {
        ...outbox,
        take: async (query) => (faults > 1 ? failing(async () => outbox.take(query)) : outbox.take(query)),
        settle: async (...result) => failing(async () => outbox.settle(...result)),
      },
    });
    await expect.poll(() => scene.ends).toEqual([["msg_1", "delivered", 1, "status 200"]]);
    expect([faults, scene.got.length]).toEqual([-1, 1]);
  });

  it("the end of a worker stops attempts under way after the grace period, and the next server tries at once", async () => {
    scene = await Scene.begin();
    scene.answer = () => undefined;
    await scene.add({});
    const worker = scene.start();
    await expect.poll(() => scene.got.length).toBe(1);
    const begun = performance.now();
    await worker.close(50);
    expect(performance.now() - begun).toBeLessThan(4_000);
    await expect(scene.dueInMs()).resolves.toBe(0);
    expect(scene.ends).toEqual([]);
  });

  it("the end of a worker tries once more what is due", async () => {
    scene = await Scene.begin();
    const worker = scene.start();
    await scene.add({});
    await worker.close(5_000);
    expect(scene.ends).toEqual([["msg_1", "delivered", 1, "status 200"]]);
  });

  it("the end of a worker takes nothing once its grace is over", async () => {
    scene = await Scene.begin();
    const answers: ((none: []) => void)[] = [];
    const take = async () => new Promise<[]>((resolve) => answers.push(resolve));
    const ended = scene.start({ outbox: { ...scene.store.outbox, take } }).close(0);
    setTimeout(() => answers[0]?.([]), 50);
    expect([await ended, answers.length]).toEqual([undefined, 1]);
  });
});
