import { afterEach, describe, expect, it } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { statusOf } from "../../src/domain/session.ts";
import { LeaseRenewal } from "../../src/engine/lease-renewal.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { collectErrors, twoNodes, type World } from "../kit/step/two-nodes.ts";
import { equalNodes, MACHINES_LEASE } from "../kit/store/equal-nodes.ts";

const { endMs, renewMs, ttlMs } = MACHINES_LEASE;
const STEP_MS = 250;
/** Time after the end of the lease within which a node notices it, ms. */
const LOOK_MS = 1_000;

/** A store that cannot be reached at present. */
class Outage extends Error {
  readonly isOutage = true;
}

/** Renews the lease of a node; `answer` is the answer of the store. */
function renewing(lease: typeof MACHINES_LEASE | null = MACHINES_LEASE) {
  const clock = new ManualClock();
  const told: [number, string][] = [];
  const tell = (what: string): void => void told.push([clock.elapsed(), what]);
  const node = {
    clock,
    told,
    answer: async (): Promise<boolean> => Promise.resolve(false),
    /** Lets `ms` pass in small steps. */
    pass: async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= STEP_MS) {
        clock.advance(Math.min(left, STEP_MS));
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    /** Times at which the lease has ended. */
    ends: () => told.flatMap(([at, what]) => (what === "ended" ? [at] : [])),
  };
  const heartbeat = async (forMs: number): Promise<boolean> => {
    tell(`heartbeat ${String(forMs)}`);
    return node.answer();
  };
  const backend = { leases: { heartbeat }, machines: lease === null ? undefined : { lease } };
  const runtime = { leaseRenewed: (forMs: number) => tell(`renewed ${String(forMs)}`) };
  const handlers = { onRenewed: () => undefined, onFailed: () => undefined, onEnded: () => tell("ended") };
  const log = { warn: () => undefined };
  return Object.assign(node, { renewal: new LeaseRenewal({ backend, clock, log, runtime }, handlers) });
}

const refused = async (): Promise<boolean> => Promise.reject(new Outage("no database"));
const hanging = async (): Promise<boolean> => new Promise(() => undefined);

describe("the lease of a node among several machines", () => {
  it.each([
    ["refuses connections", refused],
    ["does not answer", hanging],
  ])("a database that %s for 20 s ends nothing, whenever that begins", async (_, fault) => {
    for (let begin = 0; begin <= renewMs; begin += STEP_MS) {
      const node = renewing();
      const { answer } = node;
      await node.renewal.ensure();
      await node.pass(begin);
      node.answer = fault;
      await node.pass(20_000);
      node.answer = answer;
      await node.pass(endMs);
      expect([begin, node.ends()]).toEqual([begin, []]);
      node.renewal.stop();
    }
  });

  it.each([
    ["is refused", refused],
    ["hangs", hanging],
  ])("a lease ends in time when its renewal %s, and begins anew with the next", async (_, fault) => {
    const node = renewing();
    const { answer } = node;
    await node.renewal.ensure();
    await node.pass(renewMs);
    node.answer = fault;
    await node.pass(endMs + LOOK_MS);
    expect(node.ends()).toHaveLength(1);
    expect(node.ends()[0]! - renewMs).toBeGreaterThanOrEqual(endMs);
    expect(node.ends()[0]! - renewMs).toBeLessThanOrEqual(endMs + LOOK_MS);
    expect(node.renewal.isHeld).toBe(false);
    await node.pass(20_000);
    expect(node.ends()).toHaveLength(1);
    node.answer = answer;
    await node.pass(5_000);
    expect(node.renewal.isHeld).toBe(true);
    node.renewal.stop();
  });

  it("a lease counts from the beginning of a renewal, and so do the processes in shims", async () => {
    const node = renewing();
    let arrive: (hadLapsed: boolean) => void = () => undefined;
    node.answer = async () => new Promise((resolve) => (arrive = resolve));
    const begun = node.renewal.ensure();
    await node.pass(1_250);
    arrive(false);
    await begun;
    expect(node.told).toEqual([
      [0, `heartbeat ${String(ttlMs)}`],
      [1_250, `renewed ${String(endMs - 1_250)}`],
    ]);
    node.renewal.stop();
  });

  it("a renewal that hung counts when its answer comes after all", async () => {
    const node = renewing();
    const { answer } = node;
    await node.renewal.ensure();
    let arrive: (hadLapsed: boolean) => void = () => undefined;
    node.answer = async () => new Promise((resolve) => (arrive = resolve));
    await node.pass(renewMs);
    node.answer = hanging;
    await node.pass(10_000);
    arrive(false);
    await node.pass(endMs - 10_000 - STEP_MS);
    expect(node.ends()).toEqual([]);
    expect(node.renewal.isHeld).toBe(true);
    node.answer = answer;
    node.renewal.stop();
  });

  // Just before a renewal, just before a look, and right after both.
  it.each([renewMs - 1, 3_999, 4_001])(
    "a node frozen at %i ms ends what has passed before it renews anything",
    async (at) => {
      const node = renewing();
      await node.renewal.ensure();
      node.clock.advance(at);
      node.told.length = 0;
      node.clock.freeze(60_000);
      await node.pass(LOOK_MS + STEP_MS);
      expect(node.told[0]![1]).toBe("ended");
      expect(node.ends()).toHaveLength(1);
      node.renewal.stop();
    },
  );

  it("an answer that comes after a freeze, for longer than the lease, does not count", async () => {
    const node = renewing();
    let arrive: (hadLapsed: boolean) => void = () => undefined;
    node.answer = async () => new Promise((resolve) => (arrive = resolve));
    const begun = node.renewal.ensure();
    node.clock.freeze(60_000);
    arrive(false);
    await expect(begun).rejects.toThrow("the answer came too late");
    expect([node.renewal.isHeld, node.told.length]).toEqual([false, 1]);
  });

  it("a node whose lease had run out by the clock of the store gives its sessions up, and goes on", async () => {
    const node = renewing();
    await node.renewal.ensure();
    node.answer = async () => Promise.resolve(true);
    await node.pass(renewMs);
    expect(node.ends()).toEqual([renewMs]);
    expect(node.renewal.isHeld).toBe(true);
    node.renewal.stop();
  });

  it("a store of one machine has a lease without an end, of which no shim is told", async () => {
    const node = renewing(null);
    await node.renewal.ensure();
    node.answer = refused;
    await node.pass(120_000);
    node.clock.freeze(120_000);
    await node.pass(5_000);
    expect(node.told.every(([, what]) => what === "heartbeat 30000")).toBe(true);
    expect(node.renewal.isHeld).toBe(true);
    node.renewal.stop();
  });
});

describe("a session whose node cannot reach the store", () => {
  let world: World;
  afterEach(() => world.close());

  /** Starts two nodes of several machines; `store` says what node a gets. */
  function start() {
    const store = { isCut: false, appends: 0, answersAt: Promise.resolve() };
    const reach = async <T>(work: () => Promise<T>): Promise<T> => {
      if (!store.isCut) return work();
      await store.answersAt;
      throw new Outage("no database");
    };
    world = twoNodes({
      a: (backend) => ({
        machines: equalNodes(),
        log: {
          append: async (...change) => reach(async () => ((store.appends += 1), backend.log.append(...change))),
          read: async (...page) => reach(async () => backend.log.read(...page)),
        },
        leases: {
          heartbeat: async (ms) => reach(async () => backend.leases.heartbeat(ms)),
          release: async (lease) => reach(async () => backend.leases.release(lease)),
        },
      }),
      b: () => ({ machines: equalNodes() }),
    });
    // Renewals and their answers need steps far below the interval.
    const pass = async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= LOOK_MS) await world.clock.pass(Math.min(left, LOOK_MS));
    };
    return { ...world, pass, store };
  }

  it("a turn goes on through an outage of 20 s, and reports everything afterwards", async () => {
    const { a, pass, store } = start();
    const id = await a.openWithRequest();
    const process = a.runtime.lastProcess(id);
    store.isCut = true;
    process.say({ type: "message", message: { type: "assistant", text: "meanwhile" } });
    const answer = { requestId: "r1", decision: "allow", by: "caller" } as const;
    await expect(a.engine.answer(LOCAL_CALLER, id, answer)).rejects.toThrow("no database");
    await pass(20_000);
    expect([process.gone, process.calls.includes("kill")]).toEqual([false, false]);
    store.isCut = false;
    await pass(5_000);
    await a.engine.answer(LOCAL_CALLER, id, answer);
    expect(process.calls).toContain("answer r1 allow");
    process.finish();
    await a.waitForEvent(id, "turn.ended");
    expect(await a.story(id)).toContain("permission.asked message permission.answered");
  });

  it("a node cut off for longer than its lease kills Claude Code and writes no more; another records the turn", async () => {
    const { a, b, pass, store } = start();
    const id = await a.openWithRequest();
    const process = a.runtime.lastProcess(id);
    store.isCut = true;
    process.say({ type: "message", message: { type: "assistant", text: "unrecorded" } });
    await pass(endMs - 5_000);
    expect(process.gone).toBe(false);
    await pass(5_000 + LOOK_MS);
    expect(process.calls.at(-1)).toBe("kill");
    const { appends } = store;
    // Another node may claim the session only after the whole lease.
    expect((await b.engine.get("local", id)).owner).toEqual({ nodeId: "a", alive: true });
    await pass(ttlMs - endMs);
    const taken = await b.engine.get("local", id);
    expect([statusOf(taken.state), taken.state.turn]).toEqual(["error", null]);
    store.isCut = false;
    await pass(10_000);
    expect(store.appends).toBe(appends);
    expect(await b.story(id)).toMatch(/ process.exited .*turn.ended$/);
    await b.waitForEvent(id, "turn.ended");
    expect(await collectErrors([a.engine.get("local", id)])).toEqual([undefined]);
  });

  it("a node that was frozen writes nothing of what its processes did, although no other has its sessions", async () => {
    const { a, clock, pass, store } = start();
    const id = await a.openWithRequest();
    const process = a.runtime.lastProcess(id);
    const { appends } = store;
    clock.freeze(endMs);
    process.say({ type: "message", message: { type: "assistant", text: "late" } });
    await process.moments.until(() => process.gone);
    expect([process.calls.at(-1), store.appends]).toEqual(["kill", appends]);
    await pass(renewMs + LOOK_MS);
    expect(statusOf((await a.engine.get("local", id)).state)).toBe("error");
    expect(await a.story(id)).toMatch(/ message permission.asked process.exited permission.answered turn.ended$/);
  });

  it("a node that reaches the store again before its lease is over records the turn as lost by itself", async () => {
    const { a, pass, store } = start();
    const id = await a.openWithRequest();
    const process = a.runtime.lastProcess(id);
    let answer: () => void = () => undefined;
    Object.assign(store, { isCut: true, answersAt: new Promise<void>((resolve) => (answer = resolve)) });
    process.say({ type: "message", message: { type: "assistant", text: "late" } });
    await pass(endMs + LOOK_MS);
    expect(process.calls.at(-1)).toBe("kill");
    store.isCut = false;
    await pass(2_000);
    const { appends } = store;
    // A write that hung until now fails. It is not repeated.
    answer();
    await pass(2_000);
    expect(store.appends).toBe(appends);
    const { state } = await a.engine.get("local", id);
    expect([statusOf(state), state.turn]).toEqual(["error", null]);
  });
});
