import { afterEach, describe, expect, it } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import {
  type BackendOverride,
  Gate,
  gatedAppend,
  LEASE_MS,
  OPTIONS,
  twoNodes,
  type World,
} from "../kit/step/two-nodes.ts";

const RETRY_MS = 1000;

let world: World;
function start(between?: { a?: BackendOverride; b?: BackendOverride }): World {
  world = twoNodes(between);
  return world;
}
afterEach(() => world.close());

describe("an owner whose store fails", () => {
  it("an owner acts on nothing that is not stored", async () => {
    const gate = new Gate();
    const { a } = start({ a: gatedAppend(gate) });
    gate.closed = true;
    const opened = a.open();
    await gate.arrived;
    expect(a.runtime.processes).toHaveLength(0);
    gate.open();
    expect(a.runtime.lastProcess(await opened).calls).toEqual(["push begin"]);
  });

  it("a prompt that is stored after other events of its transaction reaches Claude Code", async () => {
    const gate = new Gate();
    const { a } = start({ a: gatedAppend(gate) });
    const id = await a.open();
    const session = a.runtime.lastProcess(id);
    session.finish();
    await a.waitForEvent(id, "turn.ended");
    const message = { type: "message", message: { type: "assistant" } } as const;
    gate.closed = true;
    session.say(message);
    await gate.arrived;
    // Batched into one transaction, because the first write still waits at `gate`.
    session.say(message, message, message);
    const prompted = a.engine.prompt("local", id, { text: "after them" });
    await new Promise(setImmediate);
    gate.open();
    await prompted;
    await session.waitForCall("push after them");
    expect(session.calls.at(-1)).toBe("push after them");
  });

  const filling = (disk: { full: boolean; tries: number }): BackendOverride => {
    return (backend) => ({
      log: {
        append: async (...args) => {
          disk.tries += 1;
          return disk.full ? Promise.reject(new Error("disk full")) : backend.log.append(...args);
        },
      },
    });
  };

  it("an owner stops turns that it cannot record, reports the reason, and goes on when the store works again", async () => {
    const disk = { full: false, tries: 0 };
    const { a, b, clock } = start({ a: filling(disk) });
    const id = await a.openWithRequest();
    disk.full = true;
    const why = { code: "INTERNAL", message: expect.stringContaining("disk full") };
    await expect(a.engine.interrupt("local", id, "ann")).rejects.toMatchObject(why);
    expect(a.runtime.lastProcess(id).calls.at(-1)).toBe("kill");
    await expect(a.engine.get("local", id)).rejects.toMatchObject(why);
    await expect(b.engine.prompt("local", id, { text: "x" })).rejects.toMatchObject(why);
    disk.full = false;
    clock.advance(RETRY_MS);
    await b.waitForEvent(id, "turn.ended");
    await a.engine.prompt("local", id, { text: "again" });
    expect(a.runtime.lastProcess(id)).toMatchObject({ first: false, calls: ["push again"] });
    expect(a.complaints).toEqual(["session actor"]);
  });

  it("a command that was refused because of the store is not carried out later", async () => {
    const disk = { full: false, tries: 0 };
    const { a, clock } = start({ a: filling(disk) });
    const id = await a.openIdle();
    disk.full = true;
    await expect(a.engine.prompt("local", id, { text: "refused" })).rejects.toMatchObject({ code: "INTERNAL" });
    disk.full = false;
    clock.advance(RETRY_MS);
    // The process was killed for safety; once the log has `process.exited`, the fault is over.
    await a.waitForEvent(id, "process.exited");
    await a.engine.prompt("local", id, { text: "again" });
    const prompts = (await a.log(id)).flatMap((event) => (event.type === "prompt.queued" ? [event.data.text] : []));
    expect(prompts).toEqual(["begin", "again"]);
  });

  it("a drain during the pause after a failed write does not wait for the next try", async () => {
    const disk = { full: false, tries: 0 };
    const { a } = start({ a: filling(disk) });
    const id = await a.openWithRequest();
    disk.full = true;
    await expect(a.engine.interrupt("local", id, "ann")).rejects.toMatchObject({ code: "INTERNAL" });
    await a.engine.drain();
    expect(a.runtime.lastProcess(id).calls.at(-1)).toBe("kill");
  });

  it("a failed write is tried again after a pause, and not before", async () => {
    const disk = { full: false, tries: 0 };
    const { a, clock } = start({ a: filling(disk) });
    const id = await a.openWithRequest();
    disk.full = true;
    await expect(a.engine.interrupt("local", id, "ann")).rejects.toMatchObject({ code: "INTERNAL" });
    const { tries } = disk;
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
    expect(disk.tries).toBe(tries);
    disk.full = false;
    clock.advance(RETRY_MS);
    await a.waitForEvent(id, "turn.ended");
  });

  it("an owner whose store fails can still drain", async () => {
    const disk = { full: false, tries: 0 };
    const { a, clock } = start({ a: filling(disk) });
    await a.openWithRequest();
    disk.full = true;
    const drained = a.engine.drain().then(() => "left");
    const tried = disk.tries;
    // Detects endless retries: each failed attempt must let the next command, here the drain, through.
    const trying = a.runtime.moments.until(() => disk.tries > tried + 20).then(() => "still trying");
    const onward = setInterval(() => {
      clock.advance(RETRY_MS);
      a.runtime.moments.ring();
    });
    expect(await Promise.race([drained, trying])).toBe("left");
    clearInterval(onward);
  });

  it("an owner still carries out a cancel if the text of a waiting prompt cannot be read", async () => {
    let reads = 0;
    let unreadable = false;
    const { a } = start({
      a: (backend) => ({
        log: {
          read: async (...args) => {
            if (!unreadable) return backend.log.read(...args);
            reads += 1;
            a.runtime.moments.ring();
            return Promise.reject(new Error("locked"));
          },
        },
      }),
    });
    const id = await a.openIdle();
    a.runtime.lastProcess(id).say({ type: "busy", id: "self" });
    await a.waitForEvent(id, "turn.started", 2);
    await a.engine.prompt("local", id, { text: "next" });
    unreadable = true;
    a.runtime.lastProcess(id).say({ type: "idle" });
    await a.runtime.moments.until(() => reads > 0);
    unreadable = false;
    await a.engine.cancel("local", id, { by: "ann" });
    expect(await a.waitForEvent(id, "session.closed")).toMatchObject({ data: { reason: "cancelled" } });
  });

  it("the first prompt of a session runs once if the start of the session is retried", async () => {
    const disk = { full: true, tries: 0 };
    const { a, b, clock } = start({ a: filling(disk) });
    await expect(a.open("begin", "k")).rejects.toMatchObject({ code: "INTERNAL" });
    disk.full = false;
    clock.advance(RETRY_MS);
    const id = await b.open("begin", "k");
    await b.waitForEvent(id, "process.started");
    expect((await b.story(id)).match(/prompt\.queued/g)).toHaveLength(1);
    expect(a.runtime.processes.length + b.runtime.processes.length).toBe(1);
  });

  it("an owner keeps its sessions after failed renewals of its lease for a third of the lease", async () => {
    let [beats, failing] = [0, false];
    const { a, clock } = start({
      a: (backend) => ({
        leases: {
          heartbeat: async (ttlMs) => {
            beats += 1;
            return failing ? Promise.reject(new Error("locked")) : backend.leases.heartbeat(ttlMs);
          },
        },
      }),
    });
    const id = await a.openWithRequest();
    failing = true;
    await clock.pass(LEASE_MS / 3);
    failing = false;
    const failed = beats;
    await clock.pass(LEASE_MS);
    expect(beats).toBeGreaterThan(failed);
    expect((await a.engine.get("local", id)).owner).toEqual({ nodeId: "a", alive: true });
  });

  it("a session can be opened after the very first heartbeat of its owner failed", async () => {
    let failing = true;
    const { a } = start({
      a: (backend) => ({
        leases: {
          heartbeat: async (ttlMs) => (failing ? Promise.reject(new Error("locked")) : backend.leases.heartbeat(ttlMs)),
        },
      }),
    });
    await expect(a.engine.open(LOCAL_CALLER, { options: OPTIONS, prompt: { text: "x" } })).rejects.toThrow("locked");
    failing = false;
    await expect(a.open()).resolves.toEqual(expect.any(String));
  });
});
