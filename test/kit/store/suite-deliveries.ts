import { expect, it } from "vitest";
import {
  type Delivery,
  type DeliveryScope,
  FencedError,
  type NewDelivery,
  type SubscriptionTerms,
} from "../../../src/engine/ports.ts";
import { iterator, never, range, waits, type World, write } from "./vocabulary.ts";

/** Tests of deliveries to webhooks. */

const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000];
const SCOPE = { targets: ["operator"], hasSubscribers: true };
const WAITS = { principal: "local", name: "session.waits", filter: {} } as const;
const TERMS = { ...WAITS, url: "https://example.com", secret: "whsec_1" };
const TIMEOUT = { is: "retry", fault: "timeout" } as const;

export function deliveryTests(world: () => World): void {
  const subscribe = async (id: string, over: Partial<SubscriptionTerms> = {}) =>
    world().b.outbox.subscribe(
      { ...TERMS, id, ttlMs: 2 * DAY_MS, ...over },
      { start: {}, limits: { total: 100, perPrincipal: 100 }, graceMs: 0 },
    );
  const message = (messageId: string, over: Partial<NewDelivery> = {}): NewDelivery => ({
    target: "operator",
    messageId,
    eventId: 1,
    name: "asked",
    ...over,
  });
  const take = async (node = world().b, limit = 100): Promise<Delivery[]> =>
    node.outbox.take({ ...SCOPE, except: [], limit, holdMs: MINUTE_MS });
  const idsOf = (taken: readonly Delivery[]): string[] => taken.map(({ messageId }) => messageId);
  const appendWith = async (deliveries: NewDelivery[], lease: Awaited<ReturnType<World["createOwned"]>>["lease"]) => {
    const { a, store } = world();
    const { state } = (await a.rows.get(lease.sessionId))!;
    const change = { events: [waits()], at: store.time(), state: { ...state, lastEventId: state.lastEventId + 1 } };
    return a.log.append(lease, { ...change, deliveries });
  };

  it("an append adds a delivery for each subscription that wants its items, and no other", async () => {
    const { a, createOwned, store } = world();
    const [one, two] = [await createOwned(), await createOwned({ principal: "other", spec: { cwd: "/other" } })];
    await subscribe("all");
    await subscribe("session", { filter: { sessionId: one.id } });
    await subscribe("folder", { filter: { cwd: "/repo" } });
    await subscribe("other session", { filter: { sessionId: two.id } });
    await subscribe("other folder", { filter: { cwd: "/other" } });
    await subscribe("other name", { name: "turn.ended" });
    await subscribe("other principal", { principal: "other" });
    await subscribe("ends", { ttlMs: MINUTE_MS });
    await store.advance(2 * MINUTE_MS);
    await write(a, one.lease, [waits()], store.time());
    const taken = await take();
    expect(taken.map(({ target }) => target).toSorted()).toEqual(["all", "folder", "session"]);
    const { cursor } = await a.feed.read({ ...WAITS, limit: 1 });
    const rest = {
      messageId: `${one.id}_1`,
      sessionId: one.id,
      eventId: 1,
      name: "session.waits",
      owner: "local",
      attempts: 0,
      cursor,
    };
    expect(taken[0]).toEqual({ ...rest, target: taken[0]!.target, until: expect.any(Number) as number });
    await write(a, two.lease, [waits()], store.time());
    expect((await take()).map(({ target }) => target)).toEqual(["other principal"]);
  });

  it("an append stores its deliveries with its events, or neither", async () => {
    const { b, createOwned } = world();
    const { id, lease } = await createOwned();
    await expect(appendWith([message("m1")], { ...lease, epoch: 0 })).rejects.toThrow(FencedError);
    expect([await take(), await b.outbox.dueInMs(SCOPE)]).toEqual([[], undefined]);
    await appendWith(
      [message("m1"), message("m2", { eventId: 7, name: "ended" }), message("m2", { name: "last" })],
      lease,
    );
    expect(await take()).toMatchObject([
      { target: "operator", messageId: "m1", sessionId: id, eventId: 1, name: "asked" },
      { messageId: "m2", attempts: 0 },
    ]);
    expect(await take()).toEqual([]);
  });

  it("a node takes deliveries of its scope only, and none to a target that has enough under way", async () => {
    const { a, b, createOwned, store } = world();
    const { id, lease } = await createOwned();
    await subscribe("s1");
    await write(a, lease, [waits()], store.time());
    await a.outbox.add("s", [message("m1"), message("m2", { target: "other" })]);
    const takeOf = async (scope: Partial<DeliveryScope>, except: string[] = []) =>
      idsOf(await b.outbox.take({ targets: [], hasSubscribers: false, ...scope, except, limit: 9, holdMs: MINUTE_MS }));
    expect([
      await b.outbox.dueInMs({ targets: ["x"], hasSubscribers: false }),
      await takeOf({ targets: ["x"] }),
    ]).toEqual([undefined, []]);
    expect(await takeOf({ targets: ["operator"], hasSubscribers: true }, ["operator", "s1"])).toEqual([]);
    expect([await b.outbox.dueInMs(SCOPE), await takeOf({ targets: ["operator"] })]).toEqual([0, ["m1"]]);
    expect([await takeOf({ hasSubscribers: true }), await takeOf({ targets: ["other"] })]).toEqual([
      [`${id}_1`],
      ["m2"],
    ]);
  });

  it("a delivery without a result is due again after the hold, with its attempt counted", async () => {
    const { a, b, store } = world();
    await a.outbox.add(
      "s",
      range(1, 3).map((n) => message(`m${String(n)}`)),
    );
    expect(idsOf(await take(a, 2))).toEqual(["m1", "m2"]);
    expect(idsOf(await take(b))).toEqual(["m3"]);
    const due = (await b.outbox.dueInMs(SCOPE))!;
    expect([due > 0, due <= MINUTE_MS, await take(a)]).toEqual([true, true, []]);
    await store.advance(MINUTE_MS);
    expect((await take(b)).map(({ attempts, messageId }) => [messageId, attempts])).toEqual([
      ["m1", 1],
      ["m2", 1],
      ["m3", 1],
    ]);
  });

  it("results: delivered, again later, given up, and gone", async () => {
    const { a, b, store } = world();
    await a.outbox.add(
      "s",
      range(1, 4).map((n) => message(`m${String(n)}`)),
    );
    const [one, two, three, four] = await take();
    expect(await b.outbox.settle(one!, { is: "delivered" })).toBe("delivered");
    expect(await b.outbox.settle(two!, { ...TIMEOUT, afterMs: 10 * MINUTE_MS })).toBe("retry");
    expect(await b.outbox.settle(three!, { is: "abandoned", fault: "http_4xx" })).toBe("abandoned");
    expect(await b.outbox.settle(four!, { ...TIMEOUT, afterMs: 2 * DAY_MS })).toBe("abandoned");
    await store.advance(5 * MINUTE_MS);
    expect([await take(), (await b.outbox.dueInMs(SCOPE))! > 4 * MINUTE_MS]).toEqual([[], true]);
    await store.advance(5 * MINUTE_MS);
    expect(await take()).toMatchObject([{ messageId: "m2", attempts: 1 }]);
    await a.outbox.withdraw("s", "operator", "m2");
    await a.outbox.withdraw("s", "operator", "none");
    expect(await b.outbox.settle(two!, { ...TIMEOUT, afterMs: 1 })).toBe("missing");
    expect([await b.outbox.settle(two!, { is: "delivered" }), await b.outbox.dueInMs(SCOPE)]).toEqual([
      "missing",
      undefined,
    ]);
  });

  it("a subscription tells of the last success, and of the failures since", async () => {
    const { a, b, createOwned } = world();
    const { lease } = await createOwned();
    await subscribe("s1");
    await write(a, lease, [waits(), waits()], world().store.time());
    const [one, two] = await take();
    const found = async () => (await a.outbox.find("s1"))!;
    await b.outbox.settle(one!, { ...TIMEOUT, afterMs: 1 });
    const { failedSince, lastFault } = await found();
    expect([typeof failedSince, lastFault]).toEqual(["number", "timeout"]);
    await b.outbox.settle(two!, { is: "abandoned", fault: "tls_error" });
    expect(await found()).toMatchObject({ failedSince, lastFault: "tls_error" });
    await b.outbox.settle(one!, { is: "delivered" });
    const { deliveredAt, failedSince: failing, lastFault: fault } = await found();
    expect([typeof deliveredAt, failing, fault]).toEqual(["number", undefined, undefined]);
  });

  it("a delivery bound to a node is taken by that node only, and wakes the node to which it is bound next", async () => {
    const { a, b } = world();
    const changes = iterator(b.feed.changes(never));
    await changes.next();
    const until = world().store.time() + DAY_MS;
    const woken = changes.next();
    await a.outbox.add("s", [message("m1", { nodeId: "a", until }), message("m2", { nodeId: "b", until })]);
    await woken;
    expect([await b.outbox.dueInMs(SCOPE), idsOf(await take(b)), await b.outbox.dueInMs(SCOPE)]).toEqual([
      0,
      ["m2"],
      expect.any(Number) as number,
    ]);
    const again = changes.next();
    await b.outbox.add("s", [message("m1", { nodeId: "b", until: until + 1 })]);
    await again;
    expect([idsOf(await take(a)), (await take(b)).map((each) => [each.messageId, each.until])]).toEqual([
      [],
      [["m1", until + 1]],
    ]);
    await changes.return?.();
  });

  it("a delivery that a dead node has taken is due at once for the node to which it is bound next", async () => {
    const { a, b } = world();
    await a.outbox.add("s", [message("m1", { nodeId: "a" })]);
    expect(idsOf(await take(a))).toEqual(["m1"]);
    await b.outbox.add("s", [message("m1", { nodeId: "b" })]);
    expect(await take(b)).toMatchObject([{ messageId: "m1", attempts: 1 }]);
  });

  it("a delivery that is added again keeps its attempts and its next time", async () => {
    const { a, b, createOwned } = world();
    const { lease } = await createOwned();
    await a.outbox.add(lease.sessionId, [message("m1")]);
    const [first] = await take();
    await b.outbox.settle(first!, { ...TIMEOUT, afterMs: MINUTE_MS });
    await appendWith([message("m1", { eventId: 9, name: "other" })], lease);
    expect(await take()).toEqual([]);
    await world().store.advance(MINUTE_MS);
    expect(await take()).toMatchObject([{ messageId: "m1", eventId: 1, name: "asked", attempts: 1 }]);
  });

  it("deliveries end with their time, by default a day after the event", async () => {
    const { a, b, createOwned, store } = world();
    const { lease } = await createOwned();
    await subscribe("s1");
    await appendWith([message("short", { until: store.time() + MINUTE_MS }), message("day")], lease);
    await store.advance(MINUTE_MS);
    expect(idsOf(await take())).toEqual([`${lease.sessionId}_1`, "day"]);
    await store.advance(DAY_MS - 2 * MINUTE_MS);
    expect(await take()).toHaveLength(2);
    await store.advance(2 * MINUTE_MS);
    expect([await take(), await b.outbox.dueInMs(SCOPE)]).toEqual([[], undefined]);
    await b.maintenance.forget();
    const late = { ...message("day"), sessionId: "s", until: 0, attempts: 1 };
    expect(await a.outbox.settle(late, { is: "delivered" })).toBe("missing");
  });

  it("a delivery has the position before which all others of its subscription are settled", async () => {
    const { a, b, createOwned, store } = world();
    const { lease } = await createOwned();
    await subscribe("s1");
    await subscribe("s2");
    const after = (await a.feed.read({ ...WAITS, limit: 1 })).cursor;
    await write(a, lease, [waits(), waits(), waits()], store.time());
    const feed = await a.feed.read({ ...WAITS, limit: 9, after });
    const [first, second, third] = feed.items.map(({ cursor }) => cursor);
    const positions = async () => {
      const taken = (await take()).filter(({ target }) => target === "s1");
      return { taken, cursors: taken.map(({ cursor }) => cursor) };
    };
    const one = await positions();
    expect(one.cursors).toEqual([first, after, after]);
    await b.outbox.settle(one.taken[0]!, { is: "delivered" });
    await store.advance(MINUTE_MS);
    const two = await positions();
    expect(two.cursors).toEqual([second, first]);
    await b.outbox.settle(two.taken[0]!, { is: "abandoned", fault: "http_5xx" });
    await store.advance(MINUTE_MS);
    expect((await positions()).cursors).toEqual([third]);
  });

  it("two nodes that take at the same moment never get one delivery both", async () => {
    const { a, b } = world();
    const all = range(1, 60).map((n) => `m${String(n).padStart(2, "0")}`);
    await a.outbox.add(
      "s",
      all.map((id) => message(id)),
    );
    const takeAll = async (node: typeof a): Promise<string[]> => {
      const some = idsOf(await take(node, 4));
      return some.length === 0 ? [] : [...some, ...(await takeAll(node))];
    };
    const found = await Promise.all([a, b, a, b].map(takeAll));
    expect(found.flat().toSorted()).toEqual(all);
  });
}
