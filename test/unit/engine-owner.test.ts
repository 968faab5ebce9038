import { afterEach, describe, expect, it } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { initialState, statusOf } from "../../src/domain/session.ts";
import type { WaitRequest } from "../../src/engine/api.ts";
import { walkTo } from "../support/step/cases.ts";
import {
  type Between,
  errorsOf,
  Gate,
  gatedAppend,
  OPTIONS,
  SWEEP_MS,
  type TestNode,
  twoNodes,
  type World,
} from "../support/step/two-nodes.ts";
import { T0 } from "../support/step/walk.ts";

const LEASE_MS = 30_000;
const never = new AbortController().signal;

let world: World;
function start(between?: { a?: Between; b?: Between }): World {
  world = twoNodes(between);
  return world;
}
afterEach(() => world.close());

describe("an owner that drains", () => {
  it("records what ran as interrupted, stops it, and gives its session up", async () => {
    const { a, b } = start();
    const id = await a.asked();
    await a.engine.drain();
    expect(a.runtime.of(id).calls.at(-1)).toBe("stop");
    expect((await b.backend.rows.get(id))?.owner).toBeUndefined();
    expect(await b.story(id)).toContain("permission.answered turn.ended");
    expect(await b.seen(id, "permission.answered")).toMatchObject({ data: { by: "shutdown" } });
    expect(await b.seen(id, "turn.ended")).toMatchObject({
      data: { outcome: "interrupted", errorSubtype: "shutdown" },
    });
  });

  it("leaves its session to the other, which goes on at the next command", async () => {
    const { a, b } = start();
    const id = await a.asked();
    await a.engine.drain();
    await b.engine.prompt("local", id, { text: "go on" });
    const agent = b.runtime.of(id);
    expect(agent).toMatchObject({ first: false, calls: ["push go on"] });
    agent.finish();
    expect(await b.seen(id, "turn.ended", 2)).toMatchObject({ data: { outcome: "done" } });
    expect((await b.engine.get("local", id)).owner).toMatchObject({ nodeId: "b" });
  });

  it("takes no more commands, whosever the session is, and says so", async () => {
    const gate = new Gate();
    const { a, b } = start({ a: gatedAppend(gate) });
    const [own, other] = [await a.asked(), await b.asked()];
    gate.closed = true;
    const drained = a.engine.drain();
    await gate.arrived;
    const answer = { requestId: "r1", decision: "allow", by: "caller" } as const;
    const refused = [own, other].flatMap((id) => [
      a.engine.prompt("local", id, { text: "x" }),
      a.engine.answer(LOCAL_CALLER, id, answer),
      a.engine.delivered("local", id, [{ requestId: "r1", whole: true }]),
      a.engine.interrupt("local", id, "ann"),
      a.engine.cancel("local", id, { by: "ann" }),
      a.engine.close("local", id, "ann"),
    ]);
    const refusal = { code: "INTERNAL", message: expect.stringContaining("shutting down") };
    expect(await errorsOf(refused)).toMatchObject(refused.map(() => refusal));
    gate.open();
    await drained;
    expect(b.runtime.of(other).calls).toEqual(["push begin"]);
    expect(a.runtime.processes).toHaveLength(1);
  });

  it("opens no more sessions, so that the same call with its key succeeds elsewhere", async () => {
    const gate = new Gate();
    const { a, b } = start({ a: gatedAppend(gate) });
    await a.asked();
    gate.closed = true;
    const drained = a.engine.drain();
    await gate.arrived;
    await expect(a.open("begin", "k")).rejects.toMatchObject({ code: "INTERNAL" });
    gate.open();
    await drained;
    const id = await b.open("begin", "k");
    expect(await b.story(id)).toContain("prompt.queued turn.started");
    expect(await b.engine.list({ principal: "local", limit: 9 })).toHaveLength(2);
  });

  it("starts nothing for a prompt that reaches it meanwhile, which is refused or run by the next owner", async () => {
    const gate = new Gate();
    let taken: () => void = () => undefined;
    const delivered = new Promise<void>((resolve) => (taken = resolve));
    const { a, b } = start({
      a: (backend) => ({
        ...gatedAppend(gate)(backend),
        inbox: {
          receive: async function* (lease, signal) {
            for await (const item of backend.inbox.receive(lease, signal)) {
              yield item;
              taken();
            }
          },
        },
      }),
    });
    const id = await a.asked();
    gate.closed = true;
    const drained = a.engine.drain();
    await gate.arrived;
    const prompt = { text: "too late", idempotencyKey: "k" };
    const accepted = errorsOf([b.engine.prompt("local", id, prompt)]);
    await delivered;
    gate.open();
    await Promise.race([drained, a.runtime.started(2)]);
    expect(a.runtime.processes).toHaveLength(1);
    await accepted;
    await b.engine.prompt("local", id, prompt);
    expect(b.runtime.of(id)).toMatchObject({ first: false, calls: ["push too late"] });
  });
});

describe("a session that another server goes on with", () => {
  it("is refused when that one would use another configuration or another's money, and says which", async () => {
    const { a, b } = start();
    const id = await a.asked();
    await a.engine.drain();
    for (const other of [{ configFolder: "/elsewhere" }, { paidBy: "Amazon Bedrock" }]) {
      b.runtime.identity = { ...a.runtime.identity, ...other };
      const { configFolder, paidBy } = b.runtime.identity;
      const words = [a.runtime.identity.configFolder, a.runtime.identity.paidBy, configFolder, paidBy].join(".*");
      await expect(b.engine.prompt("local", id, { text: "x" })).rejects.toMatchObject({
        code: "PERMISSION_DENIED",
        message: expect.stringMatching(new RegExp(words)),
      });
    }
    expect(b.runtime.processes).toEqual([]);
    b.runtime.identity = a.runtime.identity;
    await b.engine.prompt("local", id, { text: "go on" });
    expect(b.runtime.of(id).calls).toEqual(["push go on"]);
  });
});

describe("a session whose owner died", () => {
  async function died(between?: Between): Promise<World & { id: string }> {
    const { a, clock } = start(between && { b: between });
    const id = await a.asked();
    a.die();
    clock.advance(LEASE_MS);
    return { ...world, id };
  }

  it("is taken over with the next command: its turn is lost, its questions are closed, a reply works at once", async () => {
    const { a, b, id } = await died();
    const before = (await b.backend.log.read(id, 1, 1000)).length;
    expect((await b.backend.rows.get(id))?.owner).toEqual({ nodeId: "a", alive: false });
    await b.engine.prompt("local", id, { text: "go on" });
    const news = (await b.log(id)).slice(before);
    expect(news.map(({ type }) => type).join(" ")).toMatch(
      /^process\.exited permission\.answered turn\.ended prompt\.queued turn\.started/,
    );
    expect(news[2]).toMatchObject({ data: { outcome: "lost", isError: true } });
    expect(b.runtime.of(id)).toMatchObject({ first: false, rerun: false, calls: ["push go on"] });
    expect(a.runtime.of(id).gone).toBe(false);
    expect(b.complaints).toContain("took over a session of a server that died");
  });

  it.each([
    ["gets", async ({ engine }: TestNode, id: string) => engine.get("local", id)],
    ["lists", async ({ engine }: TestNode) => (await engine.list({ principal: "local", limit: 1 }))[0]],
  ])("is never shown as at work to anybody who %s it", async (_, look) => {
    const { b, id } = await died();
    const shown = (await look(b, id))!;
    expect([statusOf(shown.state), shown.state.asks, shown.state.process]).toEqual(["error", [], { phase: "none" }]);
  });

  it("gets no new process before the one that the dead owner left has ended", async () => {
    const { b, id } = await died();
    let end: () => void = () => undefined;
    b.runtime.mayEnd = new Promise((resolve) => (end = resolve));
    const prompted = b.engine.prompt("local", id, { text: "go on" });
    await b.runtime.moments.until(() => b.runtime.leftovers.length > 0);
    expect(b.runtime.leftovers).toEqual([{ mark: `${id}:1`, pid: 4711, startedAt: "77" }]);
    await b.seen(id, "turn.ended");
    expect(b.runtime.processes).toEqual([]);
    end();
    await prompted;
    expect(b.runtime.of(id)).toMatchObject({ mark: `${id}:2`, calls: ["push go on"] });
  });

  it("is recovered too when its owner gave it up without a word", async () => {
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

  it("is left to others by a server that is itself on its way out", async () => {
    const { a, clock } = start();
    const gate = new Gate();
    const c = world.connect("c", gatedAppend(gate));
    const id = await a.asked();
    a.die();
    await c.asked();
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

  it("goes on with its turn when it was started so", async () => {
    const { a, b, clock } = start();
    const id = await a.open("begin", undefined, { onLost: "resume" });
    await a.seen(id, "process.started");
    a.die();
    clock.advance(LEASE_MS);
    await b.engine.get("local", id);
    expect(b.runtime.of(id)).toMatchObject({ first: false, rerun: true });
    expect(await b.story(id)).toContain("process.exited turn.ended turn.started");
  });

  it("is taken over once by commands that come at once", async () => {
    let claims = 0;
    const { b, id } = await died((backend) => ({
      leases: {
        claim: async (sessionId) => {
          claims += 1;
          return backend.leases.claim(sessionId);
        },
      },
    }));
    const prompt = { text: "go on", idempotencyKey: "k" };
    await Promise.all([1, 2, 3].map(async () => b.engine.prompt("local", id, prompt)));
    // One to end what the dead owner left, and one for the prompts, which find nothing at work.
    expect(claims).toBeLessThanOrEqual(2);
    expect((await b.story(id)).match(/turn\.ended/g)).toHaveLength(1);
    expect(b.runtime.of(id).calls).toEqual(["push go on"]);
  });

  it("is no longer written by the old owner, whose process is killed as soon as it says something", async () => {
    const { a, b, id } = await died();
    await b.engine.interrupt("local", id, "ann");
    const before = await b.log(id);
    a.runtime.of(id).finish("I am still here.");
    await a.runtime.of(id).called("kill");
    expect(await b.log(id)).toEqual(before);
  });

  it("is reached at its new owner by the old one, too", async () => {
    const { a, b, id } = await died();
    await b.engine.prompt("local", id, { text: "go on" });
    a.runtime.of(id).say({ type: "notice", kind: "warning", message: "still here" });
    await a.runtime.of(id).called("kill");
    await a.engine.interrupt("local", id, "ann");
    expect(b.runtime.of(id).calls).toEqual(["push go on", "interrupt"]);
  });

  it("is taken over by whoever looks after the store, without anybody asking for it", async () => {
    const { b, clock, id } = await died();
    await clock.pass(SWEEP_MS);
    expect(await b.seen(id, "turn.ended")).toMatchObject({ data: { outcome: "lost" } });
    expect(b.runtime.leftovers).toEqual([{ mark: `${id}:1`, pid: 4711, startedAt: "77" }]);
  });

  it("wakes who waits for its end when it is taken over", async () => {
    const { b, id } = await died();
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

  it("has the status of a turn that was lost, and no cost of its own", async () => {
    const { b, id } = await died();
    await b.engine.interrupt("local", id, "ann");
    expect(statusOf((await b.engine.get("local", id)).state)).toBe("error");
  });
});
