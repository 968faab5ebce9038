import { afterEach, describe, expect, it } from "vitest";
import { AppError } from "../../src/domain/error.ts";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import {
  LEASE_MS,
  message,
  nodesWithShim,
  SWEEP_MS,
  twoNodes,
  type BackendOverride,
  type World,
} from "../kit/step/two-nodes.ts";

/** Failures and long waits of an owner with the process of its session. */

let world: World;
afterEach(() => world.close());

function start(between?: { a?: BackendOverride; b?: BackendOverride }): World {
  world = twoNodes(between);
  return world;
}

describe("an installation before a process starts", () => {
  it("the progress of an installation is logged in steps of ten percent, and when it is done", async () => {
    const { a } = start();
    a.runtime.installMissing = async (_, onProgress) => {
      for (const percent of [0, 3, 12, 19, 57, 100]) onProgress(percent);
      return Promise.resolve();
    };
    const id = await a.open();
    await a.waitForEvent(id, "notice", 4);
    const told = (await a.log(id)).flatMap((event) => (event.type === "notice" ? [event.data.message] : []));
    expect(told).toEqual([0, 10, 50, 100].map((percent) => `Preparing Claude Code, ${String(percent)} %`));
  });

  it("a cancelled session no longer waits for its installation, and no longer logs the progress", async () => {
    const { a } = start();
    a.runtime.hangs = true;
    const { start: starting } = a.runtime;
    let admitted: Promise<void> | undefined;
    a.runtime.start = (request) => {
      ({ admitted } = request);
      return starting(request);
    };
    let progress: (percent: number) => void = () => undefined;
    a.runtime.installMissing = async (_, onProgress) => {
      progress = onProgress;
      onProgress(0);
      return new Promise(() => undefined);
    };
    const id = await a.open();
    await a.waitForEvent(id, "notice");
    await a.engine.cancel("local", id, { by: "ann" });
    progress(50);
    await expect(admitted).rejects.toThrow("The process was stopped before it started.");
    await a.waitForEvent(id, "process.exited");
    expect((await a.log(id)).filter(({ type }) => type === "notice")).toHaveLength(1);
  });
});

describe("a control request", () => {
  async function idle() {
    const { a } = start();
    return { a, id: await a.openIdle() };
  }

  it.each([
    [new AppError("INVALID_ARGUMENT", "There is no task t."), "INVALID_ARGUMENT", "There is no task t."],
    [new Error("The pipe is closed."), "INTERNAL", "The pipe is closed."],
  ])("a control request that fails in Claude Code with %s is refused: %s", async (error, code, text) => {
    const { a, id } = await idle();
    a.runtime.lastProcess(id).control = () => {
      throw error;
    };
    const asked = a.engine.control(LOCAL_CALLER, id, { do: "usage" }, "ann");
    await expect(asked).rejects.toMatchObject({ code, message: text });
  });
});

it("an answer with changed input is refused if Claude Code cannot say what the input would do", async () => {
  const { a } = start();
  const id = await a.openWithRequest();
  a.runtime.lastProcess(id).judge = async () => Promise.reject(new Error("no such tool"));
  const answer = { requestId: "r1", decision: "allow", by: "caller", updatedInput: { command: "x" } } as const;
  await a.engine.delivered("local", id, [{ requestId: "r1", whole: true }]);
  const refused = { message: expect.stringContaining("its effect cannot be determined") as string };
  await expect(a.engine.answer(LOCAL_CALLER, id, answer)).rejects.toMatchObject(refused);
  expect((await a.engine.get("local", id)).state.requests).toHaveLength(1);
});

describe("a process that the next owner attaches to", () => {
  it("the next owner attaches with the last 200 messages of the turn, however many there are", async () => {
    world = nodesWithShim();
    const { a, b, clock } = world;
    const id = await a.open();
    await a.waitForEvent(id, "process.started");
    const count = 450;
    const texts = Array.from({ length: count }, (_, index) => String(index));
    a.runtime.lastProcess(id).say(...texts.map(message));
    await a.waitForEvent(id, "message", count);
    a.die();
    clock.advance(LEASE_MS);
    await b.engine.get("local", id);
    await b.runtime.moments.until(() => b.runtime.reattached.length > 0);
    const spoken = b.runtime.reattached[0]?.reattach.spoken.map(({ text }) => text);
    expect(spoken).toEqual(texts.slice(-200));
  });

  it("the next owner attaches without messages if the log cannot be read", async () => {
    world = nodesWithShim({
      b: (backend) => ({
        log: {
          read: async (id, from, limit, types) =>
            types?.[0] === "message" ? Promise.reject(new Error("disk")) : backend.log.read(id, from, limit, types),
        },
      }),
    });
    const { a, b, clock } = world;
    const id = await a.openWithRequest();
    a.die();
    clock.advance(LEASE_MS);
    await b.engine.get("local", id);
    await b.runtime.moments.until(() => b.runtime.reattached.length > 0);
    expect(b.runtime.reattached).toMatchObject([{ reattach: { open: ["r1"], spoken: [] } }]);
  });
});

it("leftover processes without a session are reported, and a sweep that fails is tried again", async () => {
  const { a, clock } = start();
  const counts = [new Error("no /proc"), 2];
  a.runtime.endAllLeftovers = async () => {
    const next = counts.shift() ?? 0;
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
  };
  await clock.pass(3 * SWEEP_MS);
  expect(a.complaints).toContain("sweep of processes failed");
  expect(a.complaints).toContain("ended leftover processes of a dead server");
  expect(counts).toEqual([]);
});
