import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Lease, SessionBackend } from "../../src/engine/ports.ts";
import { WATCH_MS } from "../../src/store/liveness.ts";
import { StoreFile } from "../kit/store/files.ts";
import { claimLease, notice, session, T0, TTL, write } from "../kit/store/vocabulary.ts";

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;
/** Interval between renewals of a lease, as in the engine, ms. */
const RENEW_MS = TTL / 6;

/** Jumps of the system clock (suspend, NTP, a user), ms. */
const JUMPS = [40 * SECOND, -40 * SECOND, HOUR, -HOUR, 5 * HOUR, 3 * DAY, -3 * DAY];

describe("store: sqlite, when the clock is set", () => {
  let store: StoreFile;
  let owner: SessionBackend;
  let other: SessionBackend;
  let id: string;
  let lease: Lease;

  beforeEach(async () => {
    store = await StoreFile.make();
    [owner, other] = [store.connect("owner"), store.connect("other")];
    await Promise.all([owner, other].map(async (node) => node.leases.heartbeat(TTL)));
    id = (await owner.rows.create(session())).record.id;
    lease = await claimLease(owner, id);
  });
  afterEach(async () => store.close());

  const aliveFor = async (node: SessionBackend): Promise<boolean | undefined> =>
    (await node.rows.get(id))?.owner?.alive;
  /** Advances the clock by `ms` while `nodes` renew their leases every `RENEW_MS`. */
  const renewFor = async (ms: number, ...nodes: SessionBackend[]): Promise<void> => {
    for (let passed = 0; passed < ms; passed += RENEW_MS) {
      store.advance(RENEW_MS);
      for (const node of nodes) await node.leases.heartbeat(TTL);
    }
  };

  it.each(JUMPS)(
    "an owner that renews its lease stays alive for observers and a new node after a clock jump of %i ms",
    async (jump) => {
      store.setBy = jump;
      const late = store.connect("late");
      await late.leases.heartbeat(TTL);
      expect(await Promise.all([owner, other, late].map(aliveFor))).toEqual([true, true, true]);
      expect([await other.leases.claim(id), await late.leases.claim(id)]).toEqual([undefined, undefined]);
      for (let n = 0; n < 12; n += 1) {
        store.advance(RENEW_MS);
        // Observers renew before the owner, the harder order for the owner.
        for (const node of [other, late, owner]) await node.leases.heartbeat(TTL);
        expect(await Promise.all([other, late].map(aliveFor))).toEqual([true, true]);
        expect(await other.leases.claim(id)).toBeUndefined();
      }
      await write(owner, lease, [notice("mine still")]);
      expect(await other.leases.abandoned(9)).toEqual([]);
    },
  );

  it.each(JUMPS)(
    "an owner that hangs stays alive for a third of a lease, and is dead later, after a clock jump of %i ms",
    async (jump) => {
      store.setBy = jump;
      await renewFor(WATCH_MS - RENEW_MS, other);
      expect(await aliveFor(other)).toBe(true);
      await renewFor(3 * TTL, other);
      expect(await aliveFor(other)).toBe(false);
      expect(await other.leases.claim(id)).toMatchObject({ nodeId: "other", tookOver: true });
      await expect(write(owner, lease, [notice("late")])).rejects.toThrow("no longer owned");
    },
  );

  it("a lease counts as expired only after a node has watched it for a third of its length", async () => {
    await renewFor(TTL + RENEW_MS, other);
    expect([await aliveFor(other), await other.leases.claim(id)]).toEqual([true, undefined]);
    // `late` has seen no lease yet, so its watch of the owner begins now.
    const late = store.connect("late");
    await late.leases.heartbeat(TTL);
    await renewFor(WATCH_MS, other);
    expect([await aliveFor(other), await aliveFor(late)]).toEqual([false, true]);
    store.advance(RENEW_MS);
    expect(await aliveFor(late)).toBe(false);
  });

  it("an owner with a permanently different clock is alive as long as it renews its lease", async () => {
    const clock = { now: () => store.now - HOUR, tick: () => store.now };
    const slow = store.connect("slow", { clock });
    await slow.leases.heartbeat(TTL);
    const slowLease = await claimLease(slow, (await slow.rows.create(session())).record.id);
    await renewFor(3 * TTL, slow, other);
    expect((await other.rows.get(slowLease.sessionId))?.owner?.alive).toBe(true);
    expect((await slow.rows.get(id))?.owner?.nodeId).toBe("owner");
  });

  it("an owner that renews its lease at the last moment keeps its session", async () => {
    store.setBy = HOUR;
    await other.leases.heartbeat(TTL);
    store.advance(WATCH_MS + 1);
    expect(await aliveFor(other)).toBe(false);
    await owner.leases.heartbeat(TTL);
    expect([await aliveFor(other), await other.leases.claim(id)]).toEqual([true, undefined]);
  });

  it("a node that others have dropped after a clock jump of days is alive with its next claim", async () => {
    const idle = store.connect("idle");
    await idle.leases.heartbeat(TTL);
    store.setBy = 3 * DAY;
    await other.leases.heartbeat(TTL);
    const mine = (await idle.rows.create(session({ at: T0 }))).record.id;
    await claimLease(idle, mine);
    expect((await other.rows.get(mine))?.owner).toEqual({ nodeId: "idle", alive: true });
  });
});
