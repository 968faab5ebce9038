import { afterEach, describe, expect, it } from "vitest";
import { initialState, statusOf } from "../../src/domain/session.ts";
import type { WaitRequest } from "../../src/engine/api.ts";
import type { SessionRecord } from "../../src/engine/ports.ts";
import { walkTo } from "../kit/step/cases.ts";
import {
  type BackendOverride,
  Gate,
  gatedAppend,
  LEASE_MS,
  OPTIONS,
  SWEEP_MS,
  type TestNode,
  twoNodes,
  type World,
} from "../kit/step/two-nodes.ts";
import { T0 } from "../kit/step/walk.ts";

const never = new AbortController().signal;

let world: World;
function start(between?: { a?: BackendOverride; b?: BackendOverride }): World {
  world = twoNodes(between);
  return world;
}
afterEach(() => world.close());

/** Records each claim of a session in `claims`. */
function countedClaims(): { between: BackendOverride; claims: string[] } {
  const claims: string[] = [];
  const between: BackendOverride = (backend) => ({
    leases: {
      claim: async (sessionId) => {
        claims.push(sessionId);
        return backend.leases.claim(sessionId);
      },
    },
  });
  return { between, claims };
}

describe("a session whose owner died before its process was recorded", () => {
  async function killOwner(over = {}): Promise<World & { id: string }> {
    const { a, clock } = start();
    a.runtime.hangs = true;
    const id = await a.open("begin", undefined, over);
    await a.engine.prompt("local", id, { text: "then", whenBusy: "queue" });
    await a.runtime.lastProcess(id).waitForCall("push begin");
    a.die();
    clock.advance(LEASE_MS);
    return { ...world, id };
  }

  it("a session without a recorded process is started by the next server, its first prompt before its queue", async () => {
    const { b, id } = await killOwner();
    const shown = await b.engine.get("local", id);
    expect([statusOf(shown.state), shown.state.queue.length]).toEqual(["running", 1]);
    expect(b.runtime.leftovers).toEqual([{ processTag: `${id}:1` }]);
    const process = b.runtime.lastProcess(id);
    expect(process).toMatchObject({ processTag: `${id}:2`, first: true, rerun: false });
    await process.waitForCall("push begin");
    process.finish();
    await process.waitForCall("push then");
    expect(process.calls).toEqual(["push begin", "push then"]);
    process.finish();
    await b.waitForEvent(id, "turn.ended", 2);
    const before = "prompt.queued turn.started prompt.queued notice process.started";
    expect(await b.story(id)).toBe(`${before} message turn.ended turn.started message turn.ended`);
  });

  it("a first turn is lost, not started, if the next server would run it for another account", async () => {
    const { b, id } = await killOwner({ onLost: "resume" });
    b.runtime.identity = { ...b.runtime.identity, paidBy: "another account" };
    await b.engine.get("local", id);
    expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({ data: { outcome: "lost" } });
    expect(b.runtime.processes).toEqual([]);
  });

  it("a first turn is lost after six servers have died before its process was recorded", async () => {
    const { b, clock, id } = await killOwner();
    let last = b;
    for (let n = 0; n < 5; n += 1) {
      last.runtime.hangs = true;
      await last.engine.get("local", id);
      await last.runtime.started(1);
      last.die();
      clock.advance(LEASE_MS);
      last = world.connect(`node-${String(n)}`);
    }
    await last.engine.get("local", id);
    expect(await last.waitForEvent(id, "turn.ended")).toMatchObject({ data: { outcome: "lost" } });
  });
});

describe("a session whose owner died", () => {
  async function killOwner(between?: BackendOverride): Promise<World & { id: string }> {
    const { a, clock } = start(between && { b: between });
    const id = await a.openWithRequest();
    a.die();
    clock.advance(LEASE_MS);
    return { ...world, id };
  }

  it("an abandoned session is taken over at the next command: its turn is lost, and a reply works at once", async () => {
    const { a, b, id } = await killOwner();
    const before = (await b.backend.log.read(id, 1, 1000)).length;
    expect((await b.backend.rows.get(id))?.owner).toEqual({ nodeId: "a", alive: false });
    await b.engine.prompt("local", id, { text: "go on" });
    const news = (await b.log(id)).slice(before);
    expect(news.map(({ type }) => type).join(" ")).toMatch(
      /^process\.exited permission\.answered turn\.ended prompt\.queued turn\.started/,
    );
    expect(news[2]).toMatchObject({ data: { outcome: "lost", isError: true } });
    expect(b.runtime.lastProcess(id)).toMatchObject({ first: false, rerun: false, calls: ["push go on"] });
    expect(a.runtime.lastProcess(id).gone).toBe(false);
    expect(b.complaints).toContain("took over a session of a server that died");
  });

  it.each([
    ["gets", async ({ engine }: TestNode, id: string) => engine.get("local", id)],
    ["lists", async ({ engine }: TestNode) => (await engine.list({ principal: "local", limit: 1 }))[0]],
  ])("a caller who %s an abandoned session never sees a running status", async (_, look) => {
    const { b, id } = await killOwner();
    const shown = (await look(b, id))!;
    expect([statusOf(shown.state), shown.state.requests, shown.state.process]).toEqual([
      "error",
      [],
      { phase: "none" },
    ]);
  });

  it("an abandoned session gets no new process before its leftover process has ended", async () => {
    const { b, id } = await killOwner();
    let end: () => void = () => undefined;
    b.runtime.mayEnd = new Promise((resolve) => (end = resolve));
    const prompted = b.engine.prompt("local", id, { text: "go on" });
    await b.runtime.moments.until(() => b.runtime.leftovers.length > 0);
    expect(b.runtime.leftovers).toEqual([{ processTag: `${id}:1`, pid: 4711, startedAt: "77", host: "m" }]);
    await b.waitForEvent(id, "turn.ended");
    expect(b.runtime.processes).toEqual([]);
    end();
    await prompted;
    expect(b.runtime.lastProcess(id)).toMatchObject({ processTag: `${id}:2`, calls: ["push go on"] });
  });

  it("a session at work is also recovered if its owner released it without recording anything", async () => {
    const { a, b } = start();
    const { log, state } = walkTo("asking");
    const session = { id: "s", principal: "local", spec: OPTIONS, state: initialState(T0), at: T0 };
    await a.backend.leases.heartbeat(LEASE_MS);
    await a.backend.rows.create(session);
    const lease = (await a.backend.leases.claim("s"))!;
    await a.backend.log.append(lease, { events: log, at: T0, state });
    await a.backend.leases.release(lease);
    const shown = await b.engine.get("local", "s");
    expect([statusOf(shown.state), shown.state.process]).toEqual(["error", { phase: "none" }]);
  });

  it("a draining server leaves an abandoned session to others", async () => {
    const { a, clock } = start();
    const gate = new Gate();
    const c = world.connect("c", gatedAppend(gate));
    const id = await a.openWithRequest();
    a.die();
    await c.openWithRequest();
    await clock.pass(LEASE_MS);
    gate.closed = true;
    const drained = c.engine.drain();
    await gate.arrived;
    await c.engine.list({ principal: "local", limit: 9 });
    await c.engine.get("local", id);
    expect((await world.b.backend.rows.get(id))?.owner).toEqual({ nodeId: "a", alive: false });
    gate.open();
    await drained;
  });

  it("an abandoned session with `onLost: resume` resumes its turn", async () => {
    const { a, b, clock } = start();
    const id = await a.open("begin", undefined, { onLost: "resume" });
    await a.waitForEvent(id, "process.started");
    a.die();
    clock.advance(LEASE_MS);
    await b.engine.get("local", id);
    expect(b.runtime.lastProcess(id)).toMatchObject({ first: false, rerun: true });
    expect(await b.story(id)).toContain("process.exited turn.ended turn.started");
  });

  it("concurrent commands take an abandoned session over once", async () => {
    const { between, claims } = countedClaims();
    const { b, id } = await killOwner(between);
    const prompt = { text: "go on", idempotencyKey: "k" };
    await Promise.all([1, 2, 3].map(async () => b.engine.prompt("local", id, prompt)));
    // At most two claims: to end leftovers of the dead owner, and for the prompts, which find no running turn.
    expect(claims.length).toBeLessThanOrEqual(2);
    expect((await b.story(id)).match(/turn\.ended/g)).toHaveLength(1);
    expect(b.runtime.lastProcess(id).calls).toEqual(["push go on"]);
  });

  it("concurrent readers take an abandoned session over once, and all see the recorded result", async () => {
    const { between, claims } = countedClaims();
    const { b, id } = await killOwner(between);
    const listed = async () => b.engine.list({ principal: "local", limit: 1 });
    const get = async () => [await b.engine.get("local", id)];
    const shown = await Promise.all([get(), listed(), get(), listed()]);
    expect(claims.length).toBe(1);
    for (const [record] of shown) expect(record).toMatchObject({ state: { turn: null, process: { phase: "none" } } });
    expect((await b.story(id)).match(/turn\.ended/g)).toHaveLength(1);
  });

  it("a server that lost the race for an abandoned session makes no claim", async () => {
    let stale: SessionRecord[] = [];
    let claims = 0;
    const { b, clock, id } = await killOwner((backend) => ({
      leases: {
        abandoned: async () => Promise.resolve(stale),
        claim: async (sessionId) => {
          claims += 1;
          return backend.leases.claim(sessionId);
        },
      },
    }));
    stale = [(await b.backend.rows.get(id))!];
    const c = world.connect("c");
    await c.engine.interrupt("local", id, "ann");
    await clock.pass(SWEEP_MS);
    expect(claims).toBe(0);
    expect((await b.backend.rows.get(id))?.owner).toBeUndefined();
  });

  it("the old owner no longer writes a session that was taken over, and kills its process at the next output", async () => {
    const { a, b, id } = await killOwner();
    await b.engine.interrupt("local", id, "ann");
    const before = await b.log(id);
    a.runtime.lastProcess(id).finish("I am still here.");
    await a.runtime.lastProcess(id).waitForCall("kill");
    expect(await b.log(id)).toEqual(before);
  });

  it("the old owner passes commands on to the new owner of a session", async () => {
    const { a, b, id } = await killOwner();
    await b.engine.prompt("local", id, { text: "go on" });
    a.runtime.lastProcess(id).say({ type: "notice", kind: "warning", message: "still here" });
    await a.runtime.lastProcess(id).waitForCall("kill");
    await a.engine.interrupt("local", id, "ann");
    expect(b.runtime.lastProcess(id).calls).toEqual(["push go on", "interrupt"]);
  });

  it("the server that cleans up the store takes an abandoned session over without a request", async () => {
    const { b, clock, id } = await killOwner();
    await clock.pass(SWEEP_MS);
    expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({ data: { outcome: "lost" } });
    expect(b.runtime.leftovers).toEqual([{ processTag: `${id}:1`, pid: 4711, startedAt: "77", host: "m" }]);
  });

  it("a takeover wakes callers that wait for the end of the session", async () => {
    const { b, id } = await killOwner();
    const request: WaitRequest = {
      sessions: [{ sessionId: id, cursor: 1 }],
      until: "end",
      timeoutMs: 10_000,
      signal: never,
    };
    const woke = b.engine.wait("local", request);
    await b.engine.interrupt("local", id, "ann");
    expect(await woke).toEqual({ woke: id });
  });

  it("an abandoned session has the status error after the takeover", async () => {
    const { b, id } = await killOwner();
    await b.engine.interrupt("local", id, "ann");
    expect(statusOf((await b.engine.get("local", id)).state)).toBe("error");
  });
});
