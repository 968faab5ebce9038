import { afterEach, describe, expect, it } from "vitest";
import type { Command } from "../../src/domain/command.ts";
import { statusOf } from "../../src/domain/session.ts";
import type { WaitRequest } from "../../src/engine/api.ts";
import { type Between, errorsOf, OPTIONS, type TestNode, twoNodes, type World } from "./step-two-nodes.ts";

const LEASE_MS = 30_000;
const never = new AbortController().signal;

let world: World;
function start(between?: { a?: Between; b?: Between }): World {
  world = twoNodes(between);
  return world;
}
afterEach(() => world.close());

/** A session of the node with a question open. */
async function asked(node: TestNode): Promise<string> {
  const id = await node.open();
  node.runtime.of(id).say({ type: "message", message: { type: "assistant" }, toolUseId: "toolu_1" });
  node.runtime.of(id).ask("r1");
  await node.seen(id, "permission.asked");
  return id;
}

/** A gate in an asynchronous way: who comes to it waits until it is opened. */
class Gate {
  #open: () => void = () => undefined;
  #arrive: () => void = () => undefined;
  readonly #opened = new Promise<void>((resolve) => (this.#open = resolve));
  readonly arrived = new Promise<void>((resolve) => (this.#arrive = resolve));
  closed = false;

  async pass(): Promise<void> {
    if (!this.closed) return;
    this.#arrive();
    await this.#opened;
  }

  open(): void {
    this.closed = false;
    this.#open();
  }
}

const gatedAppend =
  (gate: Gate): Between =>
  (backend) => ({ append: async (...args) => gate.pass().then(async () => backend.append(...args)) });

describe("an owner that drains", () => {
  it("records what ran as interrupted, stops it, and gives its session up", async () => {
    const { a, b } = start();
    const id = await asked(a);
    await a.engine.drain();
    expect(await b.story(id)).toMatch(/permission\.answered turn\.ended$/);
    expect(await b.seen(id, "permission.answered")).toMatchObject({ data: { by: "shutdown" } });
    expect(await b.seen(id, "turn.ended")).toMatchObject({
      data: { outcome: "interrupted", errorSubtype: "shutdown" },
    });
    expect(a.runtime.of(id).calls.at(-1)).toBe("stop");
    expect((await b.engine.get("local", id)).owner).toBeUndefined();
  });

  it("leaves its session to the other, which goes on at the next command", async () => {
    const { a, b } = start();
    const id = await asked(a);
    await a.engine.drain();
    await b.engine.prompt("local", id, { text: "go on" });
    const agent = b.runtime.of(id);
    expect(agent).toMatchObject({ first: false, calls: ["push go on"] });
    agent.finish();
    expect(await b.seen(id, "turn.ended", 2)).toMatchObject({ data: { outcome: "done" } });
    expect((await b.engine.get("local", id)).owner).toMatchObject({ nodeId: "b" });
  });

  it("takes no more commands, whosever the session is, and says so", async () => {
    const { a, b } = start();
    const [own, other] = [await asked(a), await asked(b)];
    await a.engine.drain();
    const answer = { requestId: "r1", decision: "allow", by: "caller" } as const;
    const refused = [own, other].flatMap((id) => [
      a.engine.prompt("local", id, { text: "x" }),
      a.engine.answer("local", id, answer),
      a.engine.delivered("local", id, [{ requestId: "r1", whole: true }]),
      a.engine.interrupt("local", id, "ann"),
      a.engine.cancel("local", id, { by: "ann" }),
      a.engine.close("local", id, "ann"),
    ]);
    const refusal = { code: "INTERNAL", message: expect.stringContaining("shutting down") };
    expect(await errorsOf(refused)).toMatchObject(refused.map(() => refusal));
    expect(b.runtime.of(other).calls).toEqual(["push begin"]);
    expect(a.runtime.processes).toHaveLength(1);
  });

  it("opens no more sessions, so that the same call with its key succeeds elsewhere", async () => {
    const { a, b } = start();
    await a.engine.drain();
    await expect(a.open("begin", "k")).rejects.toMatchObject({ code: "INTERNAL" });
    const id = await b.open("begin", "k");
    expect(await b.story(id)).toContain("prompt.queued turn.started");
  });

  it("starts nothing for a command that reaches it meanwhile, and leaves nobody waiting for an answer", async () => {
    const gate = new Gate();
    let taken: () => void = () => undefined;
    const delivered = new Promise<void>((resolve) => (taken = resolve));
    const { a, b } = start({
      a: (backend) => ({
        ...gatedAppend(gate)(backend),
        inbox: async function* (lease, signal) {
          for await (const item of backend.inbox(lease, signal)) {
            yield item;
            taken();
          }
        },
      }),
    });
    const id = await asked(a);
    gate.closed = true;
    const drained = a.engine.drain();
    await gate.arrived;
    const prompted = b.engine.prompt("local", id, { text: "too late" }).catch((error: unknown) => error);
    await delivered;
    gate.open();
    await Promise.race([drained, a.runtime.started(2)]);
    expect(a.runtime.processes).toHaveLength(1);
    expect((await b.engine.get("local", id)).state).toMatchObject({ turn: null, process: { phase: "none" } });
    const unanswered = world.close().then(() => "nobody answered");
    expect(await Promise.race([prompted, unanswered])).toMatchObject({ code: "INTERNAL", sessionId: id });
  });
});

describe("a session whose owner died", () => {
  async function died(): Promise<World & { id: string }> {
    const { a, clock } = start();
    const id = await asked(a);
    a.die();
    clock.advance(LEASE_MS);
    return { ...world, id };
  }

  it("is taken over with the next command: its turn is lost, its questions are closed, a reply works at once", async () => {
    const { a, b, id } = await died();
    expect((await b.engine.get("local", id)).owner).toEqual({ nodeId: "a", alive: false });
    const before = (await b.log(id)).length;
    await b.engine.prompt("local", id, { text: "go on" });
    const news = (await b.log(id)).slice(before);
    expect(news.map(({ type }) => type).join(" ")).toMatch(
      /^process\.exited permission\.answered turn\.ended prompt\.queued turn\.started/,
    );
    expect(news[2]).toMatchObject({ data: { outcome: "lost", isError: true } });
    expect(b.runtime.of(id)).toMatchObject({ first: false, calls: ["push go on"] });
    expect(a.runtime.of(id).gone).toBe(false);
    expect(b.complaints).toContain("took over a session of a server that died");
  });

  it("is taken over once by commands that come at once", async () => {
    const { b, id } = await died();
    const prompt = { text: "go on", idempotencyKey: "k" };
    await Promise.all([
      b.engine.interrupt("local", id, "ann"),
      ...[1, 2].map(async () => b.engine.prompt("local", id, prompt)),
    ]);
    expect((await b.story(id)).match(/turn\.ended/g)).toHaveLength(1);
    expect(b.runtime.processes).toHaveLength(1);
  });

  it("is no longer written by the old owner, whose process is killed as soon as it says something", async () => {
    const { a, b, id } = await died();
    await b.engine.interrupt("local", id, "ann");
    const before = await b.log(id);
    a.runtime.of(id).finish("I am still here.");
    await a.runtime.of(id).called("kill");
    expect(await b.log(id)).toEqual(before);
  });

  it("answers through its new owner what is asked of the old one", async () => {
    const { a, b, id } = await died();
    await b.engine.interrupt("local", id, "ann");
    a.runtime.of(id).say({ type: "idle" }, { type: "notice", kind: "warning", message: "still here" });
    await a.runtime.of(id).called("kill");
    await a.engine.prompt("local", id, { text: "through a" });
    expect(b.runtime.of(id).calls).toEqual(["push through a"]);
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

describe("an owner whose store fails", () => {
  it("acts on nothing that is not stored", async () => {
    const gate = new Gate();
    const { a } = start({ a: gatedAppend(gate) });
    gate.closed = true;
    const opened = a.open();
    await gate.arrived;
    expect(a.runtime.processes).toHaveLength(0);
    gate.open();
    expect(a.runtime.of(await opened).calls).toEqual(["push begin"]);
  });

  it("stops what it cannot record, says so, and goes on with the session when the store works again", async () => {
    let full = false;
    const sent: Command[] = [];
    const { a, b } = start({
      a: (backend) => ({
        append: async (...args) => (full ? Promise.reject(new Error("disk full")) : backend.append(...args)),
        send: async (_, command) => {
          sent.push(command);
          return Promise.reject(new Error("a node must not send to itself"));
        },
      }),
    });
    const id = await asked(a);
    full = true;
    await expect(a.engine.interrupt("local", id, "ann")).rejects.toMatchObject({ code: "INTERNAL" });
    expect(a.runtime.of(id).calls.at(-1)).toBe("kill");
    expect(a.complaints).toEqual(["session actor"]);
    full = false;
    await a.engine.prompt("local", id, { text: "again" });
    expect(sent).toEqual([]);
    expect(a.runtime.of(id)).toMatchObject({ first: false, calls: ["push again"] });
    expect(await b.seen(id, "turn.ended")).toMatchObject({ data: { outcome: "lost" } });
  });

  it("keeps its sessions when one renewal of its lease failed", async () => {
    let [beats, failing] = [0, false];
    const { a, clock } = start({
      a: (backend) => ({
        heartbeat: async (ttlMs) => {
          beats += 1;
          return failing ? Promise.reject(new Error("locked")) : backend.heartbeat(ttlMs);
        },
      }),
    });
    const id = await asked(a);
    failing = true;
    clock.advance(LEASE_MS / 3);
    failing = false;
    // What the node does next comes after it has noticed the failure.
    await a.engine.interrupt("local", id, "ann");
    clock.advance(LEASE_MS / 3);
    expect(beats).toBe(3);
    expect((await a.engine.get("local", id)).owner).toEqual({ nodeId: "a", alive: true });
  });

  it("runs the first prompt of a session at the retry of its start when the store failed in between", async () => {
    let full = true;
    const { a, b } = start({
      a: (backend) => ({
        append: async (...args) => (full ? Promise.reject(new Error("disk full")) : backend.append(...args)),
      }),
    });
    await expect(a.open("begin", "k")).rejects.toMatchObject({ code: "INTERNAL" });
    full = false;
    await a.engine.drain();
    const id = await b.open("begin", "k");
    expect(await b.story(id)).toContain("prompt.queued turn.started");
  });

  it("opens a session although its very first sign of life failed", async () => {
    let failing = true;
    const { a } = start({
      a: (backend) => ({
        heartbeat: async (ttlMs) => (failing ? Promise.reject(new Error("locked")) : backend.heartbeat(ttlMs)),
      }),
    });
    await expect(a.engine.open("local", { options: OPTIONS, prompt: "x" })).rejects.toThrow("locked");
    failing = false;
    await expect(a.open()).resolves.toEqual(expect.any(String));
  });
});
