import { afterEach, describe, expect, it } from "vitest";
import type { Command } from "../../src/domain/command.ts";
import {
  type Between,
  Gate,
  gatedAppend,
  LEASE_MS,
  message,
  nodesWithShim,
  type World,
} from "../kit/step/two-nodes.ts";
import { SHIM } from "../kit/step/walk.ts";

/** What a server that dies leaves to the next one: lines that it has dealt with, and commands that it has carried out. */

let world: World;
afterEach(() => world.close());

function start(between?: { a?: Between; b?: Between }): World {
  world = nodesWithShim(between);
  return world;
}

describe("what Claude Code has written", () => {
  it("is acknowledged once what it told is stored, with its exit", async () => {
    const gate = new Gate();
    const { a } = start({ a: gatedAppend(gate) });
    const id = await a.open();
    const process = a.runtime.of(id);
    await a.seen(id, "process.started");
    gate.closed = true;
    process.sayLine(1, message("one"));
    process.sayLine(2, { type: "alive" });
    await gate.arrived;
    expect(process.acknowledged).toEqual([]);
    gate.open();
    await process.moments.until(() => process.acknowledged.length > 0);
    expect((await a.backend.rows.get(id))!.state.process).toMatchObject({ line: 2, shim: SHIM });
    process.sayLine(3, { type: "exited", code: 1, signal: null });
    await a.seen(id, "turn.ended");
    await process.moments.until(() => process.acknowledged.length > 1);
    expect(process.acknowledged).toEqual([2, 3]);
  });

  it("is acknowledged to a process that was given up, when it has gone", async () => {
    const { a, b, clock } = start();
    const id = await a.open("begin", undefined, { onLost: "resume" });
    await a.seen(id, "process.started");
    a.die();
    clock.advance(LEASE_MS);
    b.runtime.lost = 1;
    await b.engine.get("local", id);
    await b.seen(id, "process.started", 2);
    const [former] = b.runtime.processes;
    former!.sayLine(9, { type: "exited", code: null, signal: "SIGKILL" });
    b.runtime.of(id).say(message("again"));
    await former!.moments.until(() => former!.acknowledged.length > 0);
    expect(former!.acknowledged).toEqual([9]);
  });

  it("is acknowledged when an exit comes after an ordered end: no next owner is to be started for it", async () => {
    const { a, b } = start();
    const id = await a.open();
    const process = a.runtime.of(id);
    await a.seen(id, "process.started");
    await a.engine.drain();
    process.sayLine(7, { type: "exited", code: 0, signal: null });
    await process.moments.until(() => process.acknowledged.includes(7));
    expect(await b.seen(id, "turn.ended")).toMatchObject({ data: { errorSubtype: "shutdown" } });
  });

  it("is left to the next owner with its process, by one that was frozen until then", async () => {
    const { a, b, clock } = start();
    const id = await a.open();
    await a.seen(id, "process.started");
    a.die();
    clock.advance(LEASE_MS);
    await b.engine.get("local", id);
    const [former] = a.runtime.processes;
    former!.sayLine(1, message("one"));
    await former!.called("let go");
    expect(former!.calls).not.toContain("kill");
  });

  it("is stored now and then when it tells nothing", async () => {
    const { a } = start();
    const id = await a.open();
    const process = a.runtime.of(id);
    await a.seen(id, "process.started");
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

describe("a command that a dead owner has carried out, and not answered", () => {
  const unanswered: Between = (backend) => ({
    inbox: {
      receive: async function* (lease, signal) {
        for await (const item of backend.inbox.receive(lease, signal)) {
          yield { ...item, ack: async () => new Promise(() => undefined) };
        }
      },
    },
  });

  /** The command comes after what callers ask of the server itself. */
  const late =
    (gate: Gate): Between =>
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

  /** It waits in the inbox for node b, which has another turn running by then. */
  async function handedOn(command: Command) {
    const gate = new Gate();
    const { a, b, clock } = start({ a: unanswered, b: late(gate) });
    const id = await a.rested();
    if (command.kind === "interrupt") {
      await a.engine.prompt("local", id, { text: "more" });
      await a.runtime.of(id).called("push more");
    }
    const reply = world.b.backend.inbox.send(id, command, 3_600_000);
    await a.runtime.of(id).called(command.kind === "interrupt" ? "interrupt" : "control rewind");
    if (command.kind === "interrupt") {
      a.runtime.of(id).finish();
      await a.seen(id, "turn.ended", 2);
    }
    await new Promise(setImmediate);
    a.die();
    clock.advance(LEASE_MS);
    gate.closed = true;
    await b.engine.prompt("local", id, { text: "next" });
    await b.runtime.of(id).called("push next");
    gate.open();
    return { process: b.runtime.of(id), reply };
  }

  it("does not interrupt what came after it", async () => {
    const command: Command = { id: "c1", principal: "local", kind: "interrupt", data: { by: "ann" } };
    const { process, reply } = await handedOn(command);
    expect(await reply).toMatchObject({ ok: true });
    expect(process.calls).toEqual(["push next"]);
  });

  it("does not restore files a second time, and says that it is not known whether it did", async () => {
    const request = { do: "rewind", promptId: "p", dryRun: false } as const;
    const command: Command = { id: "c1", principal: "local", kind: "control", data: { by: "ann", request } };
    const { process, reply } = await handedOn(command);
    expect(await reply).toMatchObject({
      ok: false,
      refusal: { message: expect.stringContaining("outcome is unknown") as string },
    });
    expect(process.calls).toEqual(["push next"]);
  });
});
