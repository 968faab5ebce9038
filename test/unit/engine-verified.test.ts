import { afterEach, describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/domain/event.ts";
import type { CheckOutcome } from "../../src/engine/ports.ts";
import { FencedError } from "../../src/engine/ports.ts";
import { type BackendOverride, type TestNode, twoNodes, type World } from "../kit/step/two-nodes.ts";

/** Faults at the end of a turn with receipt and verification, in an engine with folders and commands of the test. */

let world: World;
afterEach(() => world.close());

interface Fault {
  /** Type of the event whose batch cannot be stored. */
  at?: SessionEvent["type"] | undefined;
  error: Error;
}

const failing =
  (fault: Fault): BackendOverride =>
  (backend) => ({
    log: {
      append: async (lease, batch) =>
        batch.events.some(({ type }) => type === fault.at)
          ? Promise.reject(fault.error)
          : backend.log.append(lease, batch),
    },
  });

/** A node with receipts, whose commands run until the test ends them. */
function startNode(fault: Fault = { error: new Error("disk full") }) {
  world = twoNodes();
  const node = world.connect("c", failing(fault), { receipts: true });
  const runs: { readonly end: (outcome: CheckOutcome) => void; readonly stop: AbortSignal }[] = [];
  node.runtime.checks.run = async (_, __, { stop }) => new Promise((end) => runs.push({ end, stop }));
  return { node, runs };
}

const VERIFY = { commands: ["make"], attempts: 0, timeoutMs: 60_000 };

async function openDone(node: TestNode): Promise<string> {
  const id = await node.open("begin", undefined, { verify: VERIFY, allowedTools: ["Bash"] });
  const process = node.runtime.lastProcess(id);
  process.say({ type: "message", message: { type: "assistant" }, toolUseId: "toolu_1" });
  process.finish();
  return id;
}

/** Returns the first run, once it has begun. */
async function firstOf<T>(runs: readonly T[]): Promise<T> {
  await expect.poll(() => runs.length).toBe(1);
  return runs[0]!;
}

const PASSED = { status: "passed", commands: [{ command: "make", exit: 0, ms: 1, tail: "" }] } as const;
const passed = (): CheckOutcome => ({ status: "passed", commands: [...PASSED.commands] });

describe("the end of a verified turn", () => {
  it("a look that never returns ends the turn without a receipt, after its time", async () => {
    const { node, runs } = startNode();
    node.runtime.folders.compare = async () => new Promise(() => undefined);
    const id = await openDone(node);
    (await firstOf(runs)).end(passed());
    await node.waitForEvent(id, "verification.ended");
    await world.clock.pass(9_000);
    expect(await node.story(id)).not.toContain("turn.ended");
    await world.clock.pass(1_000);
    const { data } = await node.waitForEvent(id, "turn.ended");
    expect(data).toMatchObject({ outcome: "done" });
    expect(data).not.toHaveProperty("receiptEventId");
  });

  it.each(["verification.started", "verification.ended", "turn.receipt"] as const)(
    "a store that does not take %s for a while delays the end of the turn, which runs its commands once",
    async (type) => {
      const fault: Fault = { at: type, error: new Error("disk full") };
      const { node, runs } = startNode(fault);
      const id = await openDone(node);
      if (type !== "verification.started") (await firstOf(runs)).end(passed());
      const reading = async () => node.engine.get("local", id).then(() => "", String);
      await expect.poll(reading).toContain("disk full");
      await world.clock.pass(3_000);
      expect(await reading()).toContain("disk full");
      expect(runs).toHaveLength(type === "verification.started" ? 0 : 1);
      fault.at = undefined;
      await world.clock.pass(1_000);
      if (type === "verification.started") (await firstOf(runs)).end(passed());
      await node.waitForEvent(id, "turn.ended");
      const story = (await node.story(id)).split(" ");
      const ends = ["verification.started", "verification.ended", "turn.receipt", "turn.ended"];
      expect(story.filter((each) => ends.includes(each))).toEqual(ends);
      expect(runs).toHaveLength(1);
    },
  );

  it("a server that has lost the session to another one stops its commands", async () => {
    const fault: Fault = { at: "notice", error: new FencedError("s") };
    const { node, runs } = startNode(fault);
    const id = await openDone(node);
    const { stop } = await firstOf(runs);
    expect(stop.aborted).toBe(false);
    node.runtime.lastProcess(id).say({ type: "notice", kind: "warning", message: "hm" });
    await expect.poll(() => stop.aborted).toBe(true);
  });
});
