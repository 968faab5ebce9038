import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import type { ConnectionTerms, Engine } from "../../src/engine/api.ts";
import type { EngineOptions } from "../../src/engine/engine-node.ts";
import type { Operator } from "../../src/engine/policy/operator.ts";
import { OPEN_GATE, OPERATOR } from "../kit/sessions/open-gate.ts";
import { LEASE_MS, OPTIONS, twoNodes, type TestNode, type World } from "../kit/step/two-nodes.ts";
import { SHELL_TASK } from "../kit/step/walk.ts";

/** Clients with different terms and environments, at one server and at two. */

let world: World;
let [a, b] = [] as unknown as [TestNode, TestNode];
beforeEach(() => {
  world = twoNodes();
  ({ a, b } = world);
});
afterEach(() => world.close());

const SANDBOXED: Partial<Operator> = { gate: { ...OPEN_GATE, sandbox: "required" } };
let connections = 0;
function client({ engine }: TestNode, terms: Partial<ConnectionTerms> = {}): Engine {
  connections += 1;
  return engine.forConnection({ ...OPERATOR, id: `c${String(connections)}`, ...terms });
}
const opened = async (engine: Engine, prompt = "begin") =>
  (await engine.open(LOCAL_CALLER, { options: OPTIONS, prompt: { text: prompt } })).sessionId;
const identity = { configFolder: "/home/ann/.claude", paidBy: "ANTHROPIC_API_KEY" };
const another = { ...identity, paidBy: "Amazon Bedrock" };
/** Ends the turn of `prompt` in the process that received the prompt. */
async function finish(node: TestNode, id: string, prompt: string): Promise<void> {
  await node.runtime.moments.until(
    () => node.runtime.lastProcess(id).calls.includes(`push ${prompt}`) || node.runtime.lastProcess(id).gone,
  );
  await node.runtime.lastProcess(id).waitForCall(`push ${prompt}`);
  node.runtime.lastProcess(id).finish();
}

describe("a prompt of a stricter client, sent through another server", () => {
  it("a stricter client's prompt restarts the owner's process once; later prompts of both clients do not", async () => {
    const id = await a.openIdle();
    const [loose, strict] = [client(a), client(b, SANDBOXED)];
    for (const [index, sender] of [strict, loose, strict, loose].entries()) {
      await sender.prompt("local", id, { text: `p${String(index)}` });
      await a.waitForEvent(id, "turn.started", index + 2);
      const process = await a.waitForEvent(id, "process.started", 2);
      expect(process.data).toMatchObject({ processId: "2" });
      await finish(a, id, `p${String(index)}`);
      await a.waitForEvent(id, "turn.ended", index + 2);
    }
    expect(a.runtime.processes).toHaveLength(2);
    expect(a.runtime.processes.map(({ policy }) => policy.sandbox)).toEqual(["off", "required"]);
    expect(b.runtime.processes).toEqual([]);
  });

  it("a stricter client's prompt keeps its policy and environment in the owner's queue and at its start", async () => {
    a.runtime.records.set("e1", identity);
    const id = await a.open();
    await client(b, { ...SANDBOXED, environmentId: "e1" }).prompt("local", id, { text: "then", whenBusy: "queue" });
    const { state } = await a.engine.get("local", id);
    expect(state.senders).toEqual({ 1: { environmentId: "e1", policy: { sandbox: "required" } } });
    a.runtime.lastProcess(id).finish();
    await a.waitForEvent(id, "process.started", 2);
    expect(a.runtime.lastProcess(id)).toMatchObject({ environmentId: "e1", policy: { sandbox: "required" } });
    expect(a.runtime.held).toContain(`${id} e1`);
  });

  it("a stricter client's prompt cannot join a running turn; a prompt under equal terms joins", async () => {
    const id = await a.open();
    const steered = client(b, SANDBOXED).prompt("local", id, { text: "now", whenBusy: "steer" });
    await expect(steered).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    await client(b).prompt("local", id, { text: "now", whenBusy: "steer" });
    await a.runtime.lastProcess(id).waitForCall("push now");
  });

  it("a stricter client's prompt waits until the background work of the process has ended", async () => {
    const id = await a.open();
    a.runtime.lastProcess(id).say({ type: "background", tasks: [SHELL_TASK] });
    a.runtime.lastProcess(id).finish();
    await a.waitForEvent(id, "turn.ended");
    await client(b, SANDBOXED).prompt("local", id, { text: "then" });
    expect(await a.waitForEvent(id, "notice")).toMatchObject({ data: { kind: "waiting" } });
    a.runtime.lastProcess(id).say({ type: "background", tasks: [] });
    await a.waitForEvent(id, "process.started", 2);
    await finish(a, id, "then");
  });
});

describe("the environment of a session", () => {
  it("a new process has the environment of the prompt's client if the identity matches, otherwise the last one", async () => {
    for (const id of ["e1", "e2", "e3"]) a.runtime.records.set(id, id === "e3" ? another : identity);
    const [first, alike, other] = ["e1", "e2", "e3"].map((environmentId) => client(a, { environmentId }));
    const id = await opened(first!);
    expect(a.runtime.lastProcess(id).environmentId).toBe("e1");
    await finish(a, id, "begin");
    await a.waitForEvent(id, "turn.ended");
    const restarted = async (by: Engine, prompt: string, nth: number) => {
      a.runtime.lastProcess(id).kill();
      await a.waitForEvent(id, "process.exited", nth - 1);
      await by.prompt("local", id, { text: prompt });
      await a.waitForEvent(id, "process.started", nth);
      await finish(a, id, prompt);
      await a.waitForEvent(id, "turn.ended", nth);
      return a.runtime.lastProcess(id).environmentId;
    };
    expect(await restarted(alike!, "p2", 2)).toBe("e2");
    // The session keeps its last record, because the client of `e3` has another identity.
    expect(await restarted(other!, "p3", 3)).toBe("e2");
    a.runtime.records.delete("e2");
    a.runtime.identity = another;
    a.runtime.lastProcess(id).kill();
    await a.waitForEvent(id, "process.exited", 3);
    const message = expect.stringMatching(/paid by ANTHROPIC_API_KEY; .*paid by Amazon Bedrock/) as string;
    await expect(other!.prompt("local", id, { text: "p4" })).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
      message,
    });
  });

  it("a prompt for a running process may come from a client of another identity", async () => {
    for (const [id, of] of [
      ["e1", identity],
      ["e3", another],
    ] as const)
      a.runtime.records.set(id, of);
    const id = await opened(client(a, { environmentId: "e1" }));
    await finish(a, id, "begin");
    await a.waitForEvent(id, "turn.ended");
    await client(a, { environmentId: "e3" }).prompt("local", id, { text: "p2" });
    await finish(a, id, "p2");
    expect(a.runtime.processes).toHaveLength(1);
  });

  it("a fork has the environment of its sender, and the stricter of both policies", async () => {
    for (const id of ["e1", "e2"]) a.runtime.records.set(id, identity);
    const id = await opened(client(a, { environmentId: "e1", ...SANDBOXED }));
    await finish(a, id, "begin");
    await a.waitForEvent(id, "turn.ended");
    const { sessionId } = await client(a, { environmentId: "e2" }).fork(LOCAL_CALLER, id, { text: "fork" });
    expect(a.runtime.lastProcess(sessionId)).toMatchObject({ environmentId: "e2", policy: { sandbox: "required" } });
  });
});

describe("a session whose server and client are gone", () => {
  async function loseServerAndClient(): Promise<string> {
    a.runtime.records.set("e1", identity);
    const id = await opened(client(a, { environmentId: "e1" }));
    await client(a, { environmentId: "e1" }).prompt("local", id, { text: "then", whenBusy: "queue" });
    a.runtime.hangs = true;
    a.runtime.lastProcess(id).kill();
    await a.waitForEvent(id, "turn.ended");
    await client(a, { environmentId: "e1" }).queue("local", id, { do: "release", by: "ann" });
    await a.runtime.started(2);
    a.die();
    world.clock.advance(LEASE_MS);
    b.runtime.identity = another;
    return id;
  }

  it("a session without a client waits 10 s for a client of its identity, and continues in that client's environment", async () => {
    const id = await loseServerAndClient();
    const asked: unknown[] = [];
    b.runtime.findRecord = async (...about) => {
      asked.push(about);
      b.runtime.records.set("e2", identity);
      return Promise.resolve("e2");
    };
    await b.engine.get("local", id);
    await b.runtime.lastProcess(id).waitForCall("push then");
    expect(b.runtime.lastProcess(id).environmentId).toBe("e2");
    expect(asked).toEqual([[identity, expect.objectContaining({ principal: "local" }), 10_000]]);
  });

  it("a turn is lost, with the advice to reply, if no client of its identity comes", async () => {
    const id = await loseServerAndClient();
    await b.engine.get("local", id);
    const { data } = await b.waitForEvent(id, "turn.ended", 2);
    expect(data).toMatchObject({ outcome: "lost" });
    expect(data.message).toMatch(/The environment of its client is gone\. Reply to the session to go on\.$/);
    expect(b.runtime.processes).toEqual([]);
  });

  it("a server that ends while a session waits for a client leaves the session to the next server", async () => {
    const id = await loseServerAndClient();
    const asked = new Promise<void>((resolve) => {
      b.runtime.findRecord = async () => {
        resolve();
        return new Promise(() => undefined);
      };
    });
    void b.engine.get("local", id).catch(() => undefined);
    await asked;
    await b.engine.stop(0);
    expect((await b.backend.leases.abandoned(9)).map((record) => record.id)).toEqual([id]);
  });

  it("a queue stays held if there is no environment for its next prompt", async () => {
    a.runtime.records.set("e1", identity);
    const id = await a.open();
    await client(a, { environmentId: "e1" }).prompt("local", id, { text: "then", whenBusy: "queue" });
    await client(a, { environmentId: "e1" }).prompt("local", id, { text: "last", whenBusy: "queue" });
    a.runtime.identity = another;
    a.runtime.records.clear();
    a.runtime.lastProcess(id).finish();
    await a.waitForEvent(id, "turn.started", 2);
    await a.runtime.lastProcess(id).waitForCall("push then");
    a.runtime.lastProcess(id).say({ type: "exited", code: 1, signal: null });
    await a.waitForEvent(id, "turn.ended", 2);
    await expect(a.engine.queue("local", id, { do: "release", by: "ann" })).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
    });
    expect((await a.engine.get("local", id)).state.queue).toMatchObject([{ held: true }]);
  });
});

describe("an owner without a process and without an environment for a prompt", () => {
  it("an owner without an environment for a prompt leaves the session to the sender's server", async () => {
    a.runtime.records.set("e1", identity);
    const id = await a.openIdle();
    a.runtime.identity = another;
    b.runtime.records.set("e1", identity);
    // Keeps the process alive until the prompt is on its way.
    a.runtime.lastProcess(id).stop = () => undefined;
    await a.engine.control(LOCAL_CALLER, id, { do: "suspend" }, "ann");
    a.runtime.records.clear();
    const sent = client(b, { environmentId: "e1" }).prompt("local", id, { text: "go on" });
    await new Promise((resolve) => setImmediate(resolve));
    a.runtime.lastProcess(id).say({ type: "exited", code: 0, signal: null });
    await world.clock.pass(6_000);
    await sent;
    await b.runtime.lastProcess(id).waitForCall("push go on");
    expect(b.runtime.lastProcess(id).environmentId).toBe("e1");
    expect(a.runtime.processes).toHaveLength(1);
  });
});

describe("terms of one connection", () => {
  it("a gate that closes for one connection suspends its sessions, and no others", async () => {
    let allows = true;
    const open = { gate: { ...OPEN_GATE, allowsBypass: () => true } };
    const mine = client(a, { gate: { ...OPEN_GATE, allowsBypass: () => allows } });
    const [own, others] = [mine, client(a, open)];
    const options = { ...OPTIONS, permissionMode: "bypassPermissions" } as const;
    const start = async (engine: Engine) =>
      (await engine.open(LOCAL_CALLER, { options, prompt: { text: "begin" } })).sessionId;
    const [closed, kept] = [await start(own), await start(others)];
    allows = false;
    expect(await mine.enforceGate()).toBe(1);
    const suspended = async (id: string) => (await a.engine.get("local", id)).state.suspending;
    expect([await suspended(closed), await suspended(kept)]).toEqual([true, undefined]);
  });

  it("requests reach only clients that have named the session, and otherwise wait or are denied by its terms", async () => {
    const named = new Map<string, Set<string>>();
    const listeners: ((sessionId: string) => void)[] = [];
    const unattended: EngineOptions["unattended"] = {
      afterMs: 1e9,
      maxMs: 1e9,
      reach: (id) => ({ caller: (named.get(id)?.size ?? 0) > 0, user: false }),
      onReach: (listener) => void listeners.push(listener),
    };
    const c = world.connect("c", undefined, { unattended });
    const terms = (id: string, requests: "wait" | "deny"): Partial<ConnectionTerms> => ({
      id,
      limits: { ...OPERATOR.limits, unattended: { requests, maxUsd: 10 } },
      named: (sessionId) => void named.set(sessionId, (named.get(sessionId) ?? new Set()).add(id)),
    });
    const [denying, waiting] = [client(c, terms("d", "deny")), client(c, terms("w", "wait"))];
    const [denied, kept] = [await opened(denying), await opened(waiting)];
    named.clear();
    for (const id of [denied, kept]) {
      for (const tell of listeners) tell(id);
      c.runtime.lastProcess(id).ask("r1");
    }
    expect((await c.waitForEvent(denied, "permission.answered")).data).toMatchObject({ behavior: "deny", by: "rule" });
    await c.waitForEvent(kept, "permission.asked");
    expect((await c.backend.rows.get(kept))?.state).toMatchObject({ reach: { caller: false }, requests: [{}] });
    await denying.get("local", kept);
    expect([...(named.get(kept) ?? [])]).toEqual(["d"]);
  });
});
