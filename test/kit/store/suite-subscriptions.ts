import { expect, it } from "vitest";
import type { FeedQuery, ReplayStart, Subscribed, SubscriptionTerms } from "../../../src/engine/ports.ts";
import { range, waits, type World, write } from "./vocabulary.ts";

/** Tests of subscriptions to the feed. */

const HOUR_MS = 3_600_000;
const GRACE_MS = 600_000;
const LIMITS = { total: 5, perPrincipal: 3 };
const FEED = { principal: "local", name: "session.waits", filter: {} } as const;
const WAITS: FeedQuery = { ...FEED, limit: 1 };
const SCOPE = { targets: [], hasSubscribers: true, except: [] };
const TERMS = { ...FEED, url: "https://example.com/é", secret: "whsec_1" };

/** Makes the terms of subscriptions, and subscribes at node b. */
function useSubscriptions(world: () => World) {
  const terms = (id: string, over: Partial<SubscriptionTerms> = {}): SubscriptionTerms => ({
    ...TERMS,
    id,
    ttlMs: HOUR_MS,
    ...over,
  });
  const tryTo = async (wanted: SubscriptionTerms, start: ReplayStart = {}) =>
    world().b.outbox.subscribe(wanted, { start, limits: LIMITS, graceMs: GRACE_MS });
  const subscribe = async (wanted: SubscriptionTerms, start: ReplayStart = {}): Promise<Subscribed> => {
    const done = await tryTo(wanted, start);
    if (typeof done === "string") throw new Error(`the limit ${done} is reached`);
    return done;
  };
  /** Returns the ids of the events that wait for a subscription. */
  const waiting = async (id: string): Promise<number[]> => {
    const taken = await world().a.outbox.take({ ...SCOPE, limit: 100, holdMs: HOUR_MS });
    return taken.filter(({ target }) => target === id).map(({ eventId }) => eventId);
  };
  return { terms, tryTo, subscribe, waiting };
}

export function subscriptionTests(world: () => World): void {
  const { subscribe, terms, tryTo, waiting } = useSubscriptions(world);

  it("a subscription is found on every node until somebody unsubscribes, with nothing that waits for it", async () => {
    const { a, b, createOwned, store } = world();
    const { id, lease } = await createOwned();
    const wanted = terms("s1", { principal: "Zoë", filter: { cwd: `/"é"`, sessionId: id } });
    const mine = terms("s2");
    const done = await subscribe(wanted);
    await subscribe(mine);
    const { ttlMs: _, ...same } = wanted;
    const subscription = { ...same, expiresAt: expect.any(Number) as number };
    expect(done).toEqual({ subscription, cursor: (await a.feed.read(WAITS)).cursor, isTruncated: false });
    expect([await a.outbox.find("s1"), await a.outbox.find("none")]).toEqual([subscription, undefined]);
    await write(a, lease, [waits()], store.time());
    expect([await a.outbox.unsubscribe("s2"), await b.outbox.unsubscribe("s2"), await a.outbox.find("s2")]).toEqual([
      true,
      false,
      undefined,
    ]);
    expect([await waiting("s2"), await b.outbox.dueInMs(SCOPE)]).toEqual([[], undefined]);
  });

  it("a delivery names the principal of its subscription, and a take leaves out those of named principals", async () => {
    const { a, createOwned, store } = world();
    const { lease } = await createOwned();
    await subscribe(terms("s1"));
    await a.outbox.add("session", [{ target: "operator", messageId: "m", eventId: 1, name: "asked" }]);
    await write(a, lease, [waits()], store.time());
    const query = { ...SCOPE, targets: ["operator"], limit: 9, holdMs: HOUR_MS };
    const ownersOf = async (exceptOwners: string[]) =>
      (await a.outbox.take({ ...query, exceptOwners })).map(({ owner, target }) => [target, owner]);
    expect(await ownersOf(["local"])).toEqual([["operator", undefined]]);
    expect(await ownersOf(["other"])).toEqual([["s1", "local"]]);
  });

  it("a URL counts as verified for the principal who has a living subscription with it", async () => {
    const { a, store } = world();
    const { url } = (await subscribe(terms("s1"))).subscription;
    const verified = async () =>
      Promise.all([
        a.outbox.isVerified("local", url),
        a.outbox.isVerified("other", url),
        a.outbox.isVerified("local", `${url}/x`),
      ]);
    expect(await verified()).toEqual([true, false, false]);
    await store.advance(2 * HOUR_MS);
    expect(await verified()).toEqual([false, false, false]);
  });

  it("a renewal changes the end and the secret, and keeps the former secret for a while", async () => {
    const { a, store } = world();
    const first = terms("s1");
    const { subscription: begun } = await subscribe(first);
    await store.advance(HOUR_MS / 2);
    const renewed = (await subscribe({ ...first, url: "https://other.example.com" })).subscription;
    expect(renewed).toEqual({ ...begun, expiresAt: expect.any(Number) as number });
    const longer = renewed.expiresAt - begun.expiresAt;
    expect([longer >= HOUR_MS / 2, longer < HOUR_MS / 2 + 60_000]).toEqual([true, true]);
    const before = store.time();
    const { subscription } = await subscribe({ ...first, secret: "whsec_2" });
    const formerSecret = { secret: "whsec_1", until: expect.any(Number) as number };
    expect(subscription).toMatchObject({ url: first.url, secret: "whsec_2", formerSecret });
    const until = subscription.formerSecret!.until - before;
    expect([until >= GRACE_MS, until < GRACE_MS + 60_000]).toEqual([true, true]);
    // A renewal with the same secret does not prolong the former secret.
    const again = (await subscribe({ ...first, secret: "whsec_2" })).subscription;
    expect(again.formerSecret).toEqual(subscription.formerSecret);
    const third = (await subscribe({ ...first, secret: "whsec_3" })).subscription;
    expect([third.formerSecret?.secret, await a.outbox.find("s1")]).toEqual(["whsec_2", third]);
  });

  it("a subscription ends without a renewal, and begins anew with none of its former deliveries", async () => {
    const { a, b, createOwned, store } = world();
    const { lease } = await createOwned();
    await subscribe(terms("s1"));
    await subscribe({ ...terms("s1"), secret: "whsec_2" });
    await write(a, lease, [waits()], store.time());
    await store.advance(2 * HOUR_MS);
    expect([await a.outbox.find("s1"), await b.outbox.dueInMs(SCOPE), await waiting("s1")]).toEqual([
      undefined,
      undefined,
      [],
    ]);
    expect(await a.outbox.unsubscribe("s1")).toBe(false);
    await write(a, lease, [waits()], store.time());
    const { subscription } = await subscribe(terms("s1"));
    expect(subscription).toEqual({ ...TERMS, id: "s1", expiresAt: expect.any(Number) as number });
    await write(a, lease, [waits()], store.time());
    expect(await waiting("s1")).toEqual([3]);
  });

  it("subscriptions beyond a limit are refused, but renewals are not", async () => {
    const { a, store } = world();
    for (const n of range(1, 3)) await subscribe(terms(`s${String(n)}`));
    expect([await tryTo(terms("s4")), await a.outbox.find("s4")]).toEqual(["perPrincipal", undefined]);
    for (const n of [4, 5]) await subscribe(terms(`s${String(n)}`, { principal: "other" }));
    expect(await tryTo(terms("s6", { principal: "other" }))).toBe("total");
    expect(await tryTo(terms("s1"))).toMatchObject({ subscription: { id: "s1" } });
    await a.outbox.unsubscribe("s4");
    expect(await tryTo(terms("s6", { principal: "other" }))).toMatchObject({ subscription: { id: "s6" } });
    // Expired subscriptions do not count, also before a purge.
    await store.advance(2 * HOUR_MS);
    expect(await tryTo(terms("s7"))).toMatchObject({ subscription: { id: "s7" } });
  });

  it("of many that subscribe at the same moment, as many succeed as the limit allows", async () => {
    const { a, b } = world();
    const given = { start: {}, limits: LIMITS, graceMs: 1 };
    const all = range(1, 8).map(async (n) => (n % 2 ? a : b).outbox.subscribe(terms(`s${String(n)}`), given));
    const refused = (await Promise.all(all)).filter((done) => done === "perPrincipal");
    expect(refused).toHaveLength(5);
  });

  it("a subscription from a cursor on gets the items after it, and says if some are gone", async () => {
    const { a, b, createOwned } = world();
    const [one, two] = [await createOwned(), await createOwned({ spec: { cwd: "/other" } })];
    const { cursor: start } = await b.feed.read(WAITS);
    for (const at of [10, 20]) await write(a, one.lease, [waits()], at);
    await write(a, two.lease, [waits()], 30);
    const { items } = await b.feed.read({ ...WAITS, after: start, limit: 9 });
    const whole = await subscribe(terms("s1"), { after: start });
    expect([whole.isTruncated, whole.cursor]).toEqual([false, start]);
    const filtered = await subscribe(terms("s2", { filter: { sessionId: two.id } }), { after: start });
    expect([filtered.isTruncated, filtered.cursor]).toEqual([false, items[1]!.cursor]);
    const recent = await subscribe(terms("s3", { filter: { cwd: "/repo" } }), { after: start, since: 15 });
    expect(recent.isTruncated).toBe(true);
    const taken = await a.outbox.take({ ...SCOPE, limit: 9, holdMs: HOUR_MS });
    expect(taken.map(({ eventId, messageId, sessionId, target }) => [target, sessionId, eventId, messageId])).toEqual([
      ["s1", one.id, 1, `${one.id}_1`],
      ["s1", one.id, 2, `${one.id}_2`],
      ["s1", two.id, 1, `${two.id}_1`],
      ["s2", two.id, 1, `${two.id}_1`],
      ["s3", one.id, 2, `${one.id}_2`],
    ]);
    await a.outbox.unsubscribe("s1");
    const foreign = await subscribe(terms("s1"), { after: "0123456789ab.9" });
    expect([foreign.isTruncated, await waiting("s1")]).toEqual([true, [1, 2, 1]]);
    await expect(tryTo(terms("s4", { principal: "other" }), { after: "?" })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    // A renewal repeats nothing.
    await subscribe(terms("s1"), { after: start });
    expect(await waiting("s1")).toEqual([]);
  });

  it("a subscription that begins while others append misses no item after its cursor, and gets none twice", async () => {
    const { a, createOwned, store } = world();
    const owned = await Promise.all(range(1, 4).map(async () => createOwned()));
    const { cursor: after } = await a.feed.read(WAITS);
    const appends = owned.map(async ({ lease }) => {
      for (const _ of range(1, 10)) await write(a, lease, [waits()], store.time());
    });
    await subscribe(terms("s1"), { after });
    await Promise.all(appends);
    expect((await waiting("s1")).toSorted((x, y) => x - y)).toEqual(range(1, 10).flatMap((n) => [n, n, n, n]));
  });
}
