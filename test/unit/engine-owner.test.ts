import { afterEach, describe, expect, it } from "vitest";
import type { CommandReply } from "../../src/domain/command.ts";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { type BackendOverride, collectErrors, Gate, gatedAppend, twoNodes, type World } from "../kit/step/two-nodes.ts";

let world: World;
function start(between?: { a?: BackendOverride; b?: BackendOverride }): World {
  world = twoNodes(between);
  return world;
}
afterEach(() => world.close());

describe("an owner whose session has no work left", () => {
  /** Delays all answers of an owner while the gate is closed; `order` gets answers and releases as the store has them. */
  const slowAnswers =
    (gate: Gate, order: string[]): BackendOverride =>
    ({ inbox, leases }) => ({
      inbox: {
        async *receive(...args) {
          for await (const item of inbox.receive(...args)) {
            const answer = async (reply: CommandReply) => item.ack(reply).then(() => void order.push("answer"));
            yield { ...item, ack: async (reply) => gate.pass().then(async () => answer(reply)) };
          }
        },
      },
      leases: { release: async (lease) => leases.release(lease).then(() => void order.push("release")) },
    });

  it("an owner stores the answer to another node before it gives the session up", async () => {
    const [gate, order] = [new Gate(), [] as string[]];
    const { a, b } = start({ a: slowAnswers(gate, order) });
    const id = await a.openIdle();
    gate.closed = true;
    const cancelled = b.engine.cancel("local", id, { by: "ann", reason: "enough" });
    await gate.arrived;
    await a.waitForEvent(id, "process.exited");
    expect(order).toEqual([]);
    gate.open();
    await cancelled;
    await expect.poll(() => order).toEqual(["answer", "release"]);
  });
});

describe("an owner that drains", () => {
  it("a draining owner records running turns as interrupted, stops them, and releases its session", async () => {
    const { a, b } = start();
    const id = await a.openWithRequest();
    await a.engine.drain();
    expect(a.runtime.lastProcess(id).calls.at(-1)).toBe("stop");
    expect((await b.backend.rows.get(id))?.owner).toBeUndefined();
    expect(await b.story(id)).toContain("permission.answered turn.ended");
    expect(await b.waitForEvent(id, "permission.answered")).toMatchObject({ data: { by: "shutdown" } });
    expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({
      data: { outcome: "interrupted", errorSubtype: "shutdown" },
    });
  });

  it("a drained owner leaves its session to the other server, which continues at the next command", async () => {
    const { a, b } = start();
    const id = await a.openWithRequest();
    await a.engine.drain();
    await b.engine.prompt("local", id, { text: "go on" });
    const agent = b.runtime.lastProcess(id);
    expect(agent).toMatchObject({ first: false, calls: ["push go on"] });
    agent.finish();
    expect(await b.waitForEvent(id, "turn.ended", 2)).toMatchObject({ data: { outcome: "done" } });
    expect((await b.engine.get("local", id)).owner).toMatchObject({ nodeId: "b" });
  });

  it("a draining owner refuses commands to any session, with the reason", async () => {
    const gate = new Gate();
    const { a, b } = start({ a: gatedAppend(gate) });
    const [own, other] = [await a.openWithRequest(), await b.openWithRequest()];
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
    expect(await collectErrors(refused)).toMatchObject(refused.map(() => refusal));
    gate.open();
    await drained;
    expect(b.runtime.lastProcess(other).calls).toEqual(["push begin"]);
    expect(a.runtime.processes).toHaveLength(1);
  });

  it("a draining owner opens no sessions, so that the same call with its key succeeds elsewhere", async () => {
    const gate = new Gate();
    const { a, b } = start({ a: gatedAppend(gate) });
    await a.openWithRequest();
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

  it("a draining owner starts nothing for a new prompt, which is refused or run by the next owner", async () => {
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
    const id = await a.openWithRequest();
    gate.closed = true;
    const drained = a.engine.drain();
    await gate.arrived;
    const prompt = { text: "too late", idempotencyKey: "k" };
    const accepted = collectErrors([b.engine.prompt("local", id, prompt)]);
    await delivered;
    gate.open();
    await Promise.race([drained, a.runtime.started(2)]);
    expect(a.runtime.processes).toHaveLength(1);
    await accepted;
    await b.engine.prompt("local", id, prompt);
    expect(b.runtime.lastProcess(id)).toMatchObject({ first: false, calls: ["push too late"] });
  });
});

describe("a session that another server continues", () => {
  it("a server with another configuration folder or account refuses a session, and names both sides", async () => {
    const { a, b } = start();
    const id = await a.openWithRequest();
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
    expect(b.runtime.lastProcess(id).calls).toEqual(["push go on"]);
  });

  it("at another node the account decides, whatever the configuration folder", async () => {
    const { a, b } = start();
    const payer = { kind: "ANTHROPIC_API_KEY", account: "account:0000000011111111" };
    a.runtime.identity = { ...a.runtime.identity, payer, node: "a" };
    const id = await a.openWithRequest();
    await a.engine.drain();
    const there = { ...a.runtime.identity, configFolder: "/elsewhere", node: "b" };
    b.runtime.identity = { ...there, payer: { ...payer, account: "account:0000000022222222" } };
    await expect(b.engine.prompt("local", id, { text: "x" })).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringMatching(/at node a, .*account 11111111.*at node b, .*account 22222222/),
    });
    b.runtime.identity = there;
    await b.engine.prompt("local", id, { text: "go on" });
    expect(b.runtime.lastProcess(id).calls).toEqual(["push go on"]);
  });
});
