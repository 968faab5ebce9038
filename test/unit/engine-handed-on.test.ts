import { afterEach, describe, expect, it } from "vitest";
import type { Command } from "../../src/domain/command.ts";
import {
  type BackendOverride,
  Gate,
  gatedAppend,
  LEASE_MS,
  message,
  nodesWithShim,
  type World,
} from "../kit/step/two-nodes.ts";
import { SHIM } from "../kit/step/walk.ts";

/** Handover from a server that dies to the next owner: acknowledged lines, and commands that were already carried out. */

let world: World;
afterEach(() => world.close());

function start(between?: { a?: BackendOverride; b?: BackendOverride }): World {
  world = nodesWithShim(between);
  return world;
}

describe("lines of Claude Code behind a shim", () => {
  it("a line is acknowledged once its events are stored, and so is the exit", async () => {
    const gate = new Gate();
    const { a } = start({ a: gatedAppend(gate) });
    const id = await a.open();
    const process = a.runtime.lastProcess(id);
    await a.waitForEvent(id, "process.started");
    gate.closed = true;
    process.sayLine(1, message("one"));
    process.sayLine(2, { type: "alive" });
    await gate.arrived;
    expect(process.acknowledged).toEqual([]);
    gate.open();
    await process.moments.until(() => process.acknowledged.length > 0);
    expect((await a.backend.rows.get(id))!.state.process).toMatchObject({ line: 2, shim: SHIM });
    process.sayLine(3, { type: "exited", code: 1, signal: null });
    await a.waitForEvent(id, "turn.ended");
    await process.moments.until(() => process.acknowledged.length > 1);
    expect(process.acknowledged).toEqual([2, 3]);
  });

  it("the exit of a process that was given up is acknowledged while the session runs in a new process", async () => {
    const { a, b, clock } = start();
    const id = await a.open("begin", undefined, { onLost: "resume" });
    await a.waitForEvent(id, "process.started");
    a.die();
    clock.advance(LEASE_MS);
    b.runtime.lostLines = 1;
    await b.engine.get("local", id);
    await b.waitForEvent(id, "process.started", 2);
    const [former] = b.runtime.processes;
    former!.sayLine(9, { type: "exited", code: null, signal: "SIGKILL" });
    b.runtime.lastProcess(id).say(message("again"));
    await former!.moments.until(() => former!.acknowledged.length > 0);
    expect(former!.acknowledged).toEqual([9]);
  });

  it("an exit after a shutdown is acknowledged, so that no next owner is started for it", async () => {
    const { a, b } = start();
    const id = await a.open();
    const process = a.runtime.lastProcess(id);
    await a.waitForEvent(id, "process.started");
    await a.engine.drain();
    process.sayLine(7, { type: "exited", code: 0, signal: null });
    await process.moments.until(() => process.acknowledged.includes(7));
    expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({ data: { errorSubtype: "shutdown" } });
  });

  it("a server that was frozen during the takeover leaves the lines and the process to the next owner", async () => {
    const { a, b, clock } = start();
    const id = await a.open();
    await a.waitForEvent(id, "process.started");
    a.die();
    clock.advance(LEASE_MS);
    await b.engine.get("local", id);
    const [former] = a.runtime.processes;
    former!.sayLine(1, message("one"));
    await former!.waitForCall("let go");
    expect(former!.calls).not.toContain("kill");
  });

  it("lines without events are stored and acknowledged every 500 lines", async () => {
    const { a } = start();
    const id = await a.open();
    const process = a.runtime.lastProcess(id);
    await a.waitForEvent(id, "process.started");
    await a.engine.get("local", id);
    const { rev } = (await a.backend.rows.get(id))!;
    for (let line = 1; line <= 1200; line += 1) {
      process.sayLine(line, { type: "alive" });
      if (line % 100 === 0) await new Promise(setImmediate);
    }
    expect(process.acknowledged).toEqual([500, 1000]);
    expect((await a.backend.rows.get(id))!.rev).toBe(rev + 2);
  });
});

describe("a command that a dead owner carried out without an answer", () => {
  const unanswered: BackendOverride = (backend) => ({
    inbox: {
      receive: async function* (lease, signal) {
        for await (const item of backend.inbox.receive(lease, signal)) {
          yield { ...item, ack: async () => new Promise(() => undefined) };
        }
      },
    },
  });

  /** Holds back commands of the inbox at `gate`, so that calls to the server itself come first. */
  const heldBack =
    (gate: Gate): BackendOverride =>
    (backend) => ({
      inbox: {
        receive: async function* (lease, signal) {
          for await (const item of backend.inbox.receive(lease, signal)) {
            await gate.pass();
            yield item;
          }
        },
      },
    });

  /** Node a carries out `command` and dies unanswered; node b receives the command with another turn running. */
  async function handOver(command: Command) {
    const gate = new Gate();
    const { a, b, clock } = start({ a: unanswered, b: heldBack(gate) });
    const id = await a.openIdle();
    if (command.kind === "interrupt") {
      await a.engine.prompt("local", id, { text: "more" });
      await a.runtime.lastProcess(id).waitForCall("push more");
    }
    const reply = world.b.backend.inbox.send(id, command, 3_600_000);
    await a.runtime.lastProcess(id).waitForCall(command.kind === "interrupt" ? "interrupt" : "control rewind");
    if (command.kind === "interrupt") {
      a.runtime.lastProcess(id).finish();
      await a.waitForEvent(id, "turn.ended", 2);
    }
    await new Promise(setImmediate);
    a.die();
    clock.advance(LEASE_MS);
    gate.closed = true;
    await b.engine.prompt("local", id, { text: "next" });
    await b.runtime.lastProcess(id).waitForCall("push next");
    gate.open();
    return { process: b.runtime.lastProcess(id), reply };
  }

  it("an interrupt that a dead owner carried out does not interrupt a later turn", async () => {
    const command: Command = { id: "c1", principal: "local", kind: "interrupt", data: { by: "ann" } };
    const { process, reply } = await handOver(command);
    expect(await reply).toMatchObject({ ok: true });
    expect(process.calls).toEqual(["push next"]);
  });

  it("a rewind that a dead owner carried out is not repeated, and its outcome is reported as unknown", async () => {
    const request = { do: "rewind", promptId: "p", dryRun: false } as const;
    const command: Command = { id: "c1", principal: "local", kind: "control", data: { by: "ann", request } };
    const { process, reply } = await handOver(command);
    expect(await reply).toMatchObject({
      ok: false,
      refusal: { message: expect.stringContaining("outcome is unknown") as string },
    });
    expect(process.calls).toEqual(["push next"]);
  });
});
