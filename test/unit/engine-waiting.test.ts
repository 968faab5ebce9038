import { afterEach, beforeEach, expect, it } from "vitest";
import type { SessionState } from "../../src/domain/session.ts";
import { OPTIONS, twoNodes, type World } from "../kit/step/two-nodes.ts";
import { T0, Walk } from "../kit/step/walk.ts";

/** Turns that wait at a limit, from owner to owner and without any. */

let world: World;
beforeEach(() => {
  // Node a takes over nothing.
  world = twoNodes({ a: () => ({ leases: { abandoned: async () => Promise.resolve([]) } }) });
});
afterEach(() => world.close());

const spec = { ...OPTIONS, onLost: "resume" } as const;

/** Stores a session whose turn waits without a process, and without an owner. */
async function storeWaiting(over: Partial<SessionState>): Promise<string> {
  const { state } = new Walk().prompt("p1");
  const waits = { ...state, lastEventId: 0, process: { phase: "none" as const }, ...over };
  const { record } = await world.a.backend.rows.create({ id: "waits", principal: "local", spec, state: waits, at: T0 });
  return record.state.turn!.id;
}

it("a turn that waits at a limit without a process waits on at the next server, for no environment", async () => {
  const { b, clock } = world;
  const waiting = { kind: "usage_limit", until: clock.now() + 3_600_000, since: clock.now() } as const;
  b.runtime.findRecord = async () => Promise.reject(new Error("waited for an environment"));
  const turnId = await storeWaiting({ waiting });
  const { owner, state: now } = await b.engine.get("local", "waits");
  expect(owner).toEqual({ nodeId: b.backend.nodeId, alive: true });
  expect(now).toMatchObject({ waiting, turn: { id: turnId }, process: { phase: "none" } });
  expect([b.engine.atWork(), b.runtime.keepsRecord("waits"), b.runtime.processes]).toEqual([1, true, []]);
  expect(await b.backend.leases.abandoned(9)).toEqual([]);
  // No time passes on this clock: the end does not wait for the turn.
  await b.engine.stop(60_000);
  expect((await b.backend.leases.abandoned(9)).map(({ id }) => id)).toEqual(["waits"]);
});

it("a search for an environment has no end, unless the session is given up", async () => {
  const { b } = world;
  const asked: (readonly unknown[])[] = [];
  b.runtime.findRecord = async (...about) => {
    asked.push(about);
    return new Promise(() => undefined);
  };
  const identity = { configFolder: "/other", paidBy: "another account" };
  await storeWaiting({ identity, waiting: { kind: "environment", isSearching: true, since: T0 } });
  await b.engine.get("local", "waits");
  const [[wanted, , ms, signal]] = asked as [[unknown, unknown, number, AbortSignal]];
  expect([asked.length, wanted, ms, signal.aborted]).toEqual([1, identity, Infinity, false]);
  await b.engine.interrupt("local", "waits", "caller");
  expect(await b.waitForEvent("waits", "turn.ended")).toMatchObject({ data: { outcome: "interrupted" } });
  await expect.poll(() => signal.aborted).toBe(true);
});

it("a turn that waits for an environment sends its refused request again once a client has one", async () => {
  const { b } = world;
  const found: ((id: string | undefined) => void)[] = [];
  b.runtime.findRecord = async () => new Promise((resolve) => found.push(resolve));
  const identity = { configFolder: "/other", paidBy: "another account" };
  await storeWaiting({ identity, waiting: { kind: "environment", isSearching: true, since: T0 } });
  await b.engine.get("local", "waits");
  b.runtime.records.set("e1", identity);
  found[0]?.("e1");
  await b.runtime.started(1);
  const process = b.runtime.lastProcess("waits");
  expect(process.environmentId).toBe("e1");
  await process.waitForCall("send again");
});
