import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { statusOf } from "../../src/domain/session.ts";
import type { Engine, WaitRequest, WaitUntil } from "../../src/engine/api.ts";
import { collectErrors, OPTIONS, type TestNode, twoNodes, type World } from "../kit/step/two-nodes.ts";
import { POLICY, SECOND } from "../kit/step/walk.ts";

let world: World;
let [a, b] = [] as unknown as [TestNode, TestNode];

beforeEach(() => {
  world = twoNodes();
  ({ a, b } = world);
});
afterEach(() => world.close());

const never = new AbortController().signal;
const allow = (requestId: string) => ({ requestId, decision: "allow", by: "caller" }) as const;

async function waitFor(engine: Engine, sessionId: string, until: WaitUntil, cursor = 1): Promise<string | undefined> {
  const request = { sessions: [{ sessionId, cursor }], until, timeoutMs: 10_000, signal: never };
  return (await engine.wait("local", request)).woke;
}

describe.each(["a", "b"] as const)("a session that node a owns, through node %s", (name) => {
  const via = () => (name === "a" ? a : b).engine;

  it("a session accepts a prompt through node a or b", async () => {
    const id = await a.openIdle();
    const next = (await a.log(id)).length + 1;
    expect(await via().prompt("local", id, { text: "go on" })).toEqual({ cursor: next });
    expect(a.runtime.lastProcess(id).calls).toEqual(["push begin", "push go on"]);
    expect(await via().read("local", id, next, 2)).toMatchObject([
      { id: next, type: "prompt.queued", data: { text: "go on" } },
      { id: next + 1, type: "turn.started" },
    ]);
  });

  it("a busy session refuses a prompt", async () => {
    const id = await a.open();
    const refused = via().prompt("local", id, { text: "me too" });
    await expect(refused).rejects.toMatchObject({ code: "SESSION_BUSY", sessionId: id });
  });

  it("a session accepts an answer through node a or b", async () => {
    const id = await a.openWithRequest();
    const { cursor } = await via().answer(LOCAL_CALLER, id, allow("r1"));
    expect(await via().read("local", id, cursor, 1)).toMatchObject([{ data: { requestId: "r1", by: "caller" } }]);
    expect(a.runtime.lastProcess(id).calls).toContain("answer r1 allow");
  });

  it("the delivery of a request is recorded, and the request denied a minute later", async () => {
    const id = await a.openWithRequest();
    await via().delivered("local", id, [{ requestId: "r1", whole: true }]);
    expect((await via().get("local", id)).state.requests).toMatchObject([{ seenWhole: true }]);
    await world.clock.pass(POLICY.requestDeliveredMs);
    expect(await b.waitForEvent(id, "permission.answered")).toMatchObject({
      data: { behavior: "deny", by: "timeout" },
    });
    await a.runtime.lastProcess(id).waitForCall("answer r1 deny");
  });

  it("an interrupt closes the open request, and ends the turn as interrupted", async () => {
    const id = await a.openWithRequest();
    const { cursor } = await via().interrupt("local", id, "ann");
    expect(await via().read("local", id, cursor, 1)).toMatchObject([
      { type: "permission.answered", data: { by: "cancel" } },
    ]);
    expect(a.runtime.lastProcess(id).calls).toContain("interrupt");
    a.runtime.lastProcess(id).finish("");
    expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({ data: { outcome: "interrupted" } });
  });

  it("a cancel is permanent, and a second cancel changes nothing", async () => {
    const id = await a.openWithRequest();
    await via().cancel("local", id, { by: "ann", reason: "enough" });
    expect(statusOf((await via().get("local", id)).state)).toBe("cancelled");
    await expect(via().prompt("local", id, { text: "x" })).rejects.toMatchObject({ code: "CANCELLED" });
    expect(a.runtime.lastProcess(id).gone).toBe(true);
    await expect(via().cancel("local", id, { by: "bob" })).resolves.toBeUndefined();
    expect((await via().get("local", id)).state.closed).toMatchObject({ by: "ann" });
  });

  it("a session is closed after its running turn was interrupted", async () => {
    const id = await a.open();
    await via().close("local", id, "ann");
    expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({ data: { outcome: "interrupted" } });
    expect(statusOf((await via().get("local", id)).state)).toBe("closed");
    expect(a.runtime.lastProcess(id).gone).toBe(true);
  });

  it("a session is read and listed with its current state", async () => {
    const id = await a.openWithRequest();
    const record = await via().get("local", id);
    expect(record).toMatchObject({ id, principal: "local", spec: OPTIONS, owner: { nodeId: "a", alive: true } });
    expect(await via().list({ principal: "local", limit: 9 })).toEqual([record]);
    expect(await via().read("local", id, 2, 1)).toEqual([(await a.log(id))[1]]);
    expect(await via().list({ principal: "local", statuses: ["idle"], limit: 9 })).toEqual([]);
  });

  it.each(["news", "event"] as const)("a request wakes callers that wait for %s", async (until) => {
    const id = await a.open();
    const { id: last } = await a.waitForEvent(id, "process.started");
    const woke = waitFor(via(), id, until, last + 1);
    a.runtime.lastProcess(id).ask("r1");
    expect(await woke).toBe(id);
    expect(await via().read("local", id, last + 1, 1)).toMatchObject([{ type: "permission.asked" }]);
  });

  it("callers that wait for the end wake only at the end", async () => {
    const id = await a.open();
    const woke = waitFor(via(), id, "end").then(async () => a.story(id));
    a.runtime.lastProcess(id).ask("r1");
    await a.waitForEvent(id, "permission.asked");
    await a.engine.answer(LOCAL_CALLER, id, allow("r1"));
    a.runtime.lastProcess(id).finish();
    expect(await woke).toMatch(/permission\.answered message turn\.ended$/);
  });

  it("a wait for news or the end returns at once while nothing runs; a wait for an event does not", async () => {
    const id = await a.openIdle();
    const after = (await a.log(id)).length + 1;
    expect(await waitFor(via(), id, "news", after)).toBe(id);
    expect(await waitFor(via(), id, "end", after)).toBe(id);
    const request: WaitRequest = {
      sessions: [{ sessionId: id, cursor: after }],
      until: "event",
      timeoutMs: 20,
      signal: never,
    };
    expect(await via().wait("local", request)).toEqual({ woke: undefined });
  });

  it("a wait for the end goes on when one turn follows another", async () => {
    const id = await a.openIdle();
    a.runtime.lastProcess(id).say({ type: "busy", id: "self" });
    await a.waitForEvent(id, "turn.started", 2);
    await via().prompt("local", id, { text: "next" });
    const woke = waitFor(via(), id, "end").then(async () => a.story(id));
    a.runtime.lastProcess(id).say({ type: "idle" });
    await a.waitForEvent(id, "turn.started", 3);
    await a.runtime.lastProcess(id).waitForCall("push next");
    a.runtime.lastProcess(id).finish();
    expect((await woke).match(/turn\.ended/g)).toHaveLength(3);
  });

  it("a session does not exist for another principal, whatever the call", async () => {
    const id = await a.openWithRequest();
    const before = JSON.stringify([await a.engine.get("local", id), await a.log(id)]);
    const wait: WaitRequest = {
      sessions: [{ sessionId: id, cursor: 1 }],
      until: "event",
      timeoutMs: 10_000,
      signal: never,
    };
    const tries = [
      via().prompt("eve", id, { text: "x" }),
      via().answer({ ...LOCAL_CALLER, principal: "eve" }, id, allow("r1")),
      via().delivered("eve", id, [{ requestId: "r1", whole: true }]),
      via().interrupt("eve", id, "eve"),
      via().cancel("eve", id, { by: "eve" }),
      via().close("eve", id, "eve"),
      via().get("eve", id),
      via().read("eve", id, 1, 9),
      via().wait("eve", wait),
      via().get("local", "no-such-session"),
    ];
    expect(await collectErrors(tries)).toMatchObject(tries.map(() => ({ code: "SESSION_NOT_FOUND" })));
    expect(await via().list({ principal: "eve", limit: 9 })).toEqual([]);
    expect(JSON.stringify([await a.engine.get("local", id), await a.log(id)])).toBe(before);
  });
});

describe("two nodes", () => {
  it.each(["ab", "ba"])(
    "two nodes give the first answer to Claude Code and report it to the second caller: %s",
    async (order) => {
      const id = await a.openWithRequest();
      const [first, second] = order === "ab" ? [a, b] : [b, a];
      const errors = await collectErrors([
        first.engine.answer(LOCAL_CALLER, id, allow("r1")),
        second.engine.answer(LOCAL_CALLER, id, { requestId: "r1", decision: "deny", by: "caller" }),
      ]);
      const [won] = a.runtime.lastProcess(id).calls.filter((call) => call.startsWith("answer"));
      const behavior = won?.split(" ").at(-1) ?? "";
      expect(errors.filter((error) => error !== undefined)).toMatchObject([
        { code: "PERMISSION_REQUEST_NOT_FOUND", message: expect.stringContaining(`already answered: ${behavior}, by`) },
      ]);
      expect((await a.story(id)).match(/permission\.answered/g)).toHaveLength(1);
    },
  );

  it("two nodes open one session with one prompt when both receive the same key", async () => {
    const [id, ...others] = await Promise.all([a.open("begin", "k"), b.open("begin", "k"), a.open("begin", "k")]);
    expect(others).toEqual([id, id]);
    await a.waitForEvent(id, "process.started");
    expect((await a.story(id)).match(/prompt\.queued/g)).toHaveLength(1);
    expect(a.runtime.processes.length + b.runtime.processes.length).toBe(1);
  });

  it("two nodes make one turn of two prompts with one key", async () => {
    const id = await a.openIdle();
    const prompt = { text: "next", idempotencyKey: "k" };
    const [one, two] = await Promise.all([a, b].map(async ({ engine }) => engine.prompt("local", id, prompt)));
    expect(one).toEqual(two);
    expect(a.runtime.lastProcess(id).calls.filter((call) => call === "push next")).toHaveLength(1);
    expect((await a.story(id)).match(/turn\.started/g)).toHaveLength(2);
  });

  it("a wait for several sessions reports which session woke", async () => {
    const [one, two] = [await a.open(), await b.open()];
    const sessions = [one, two].map((sessionId) => ({ sessionId, cursor: 1 }));
    const woke = a.engine.wait("local", { sessions, until: "news", timeoutMs: 10_000, signal: never });
    b.runtime.lastProcess(two).finish();
    expect(await woke).toEqual({ woke: two });
  });

  it("a wait for a running session goes on after others have ended", async () => {
    const [quiet, busy] = [await a.openIdle(), await b.open()];
    const { state } = await a.engine.get("local", quiet);
    const sessions = [quiet, busy].map((sessionId) => ({ sessionId, cursor: 1 }));
    const until = "news" as const;
    const seen = sessions.map((each) => (each.sessionId === quiet ? { ...each, cursor: state.lastEventId + 1 } : each));
    const woke = a.engine.wait("local", { sessions: seen, until, timeoutMs: 10_000, signal: never });
    b.runtime.lastProcess(busy).finish();
    expect(await woke).toEqual({ woke: busy });
    // An end at or after the cursor is still news, and a wait returns at once if nothing runs.
    const third = await b.open();
    const again = [{ sessionId: third, cursor: 1 }, sessions[0]!];
    expect(await a.engine.wait("local", { sessions: again, until, timeoutMs: 10_000, signal: never })).toEqual({
      woke: quiet,
    });
    const ended = await a.engine.wait("local", { sessions: seen, until, timeoutMs: 600_000, signal: never });
    expect(ended).toEqual({ woke: busy });
  });

  it("a wait ends at its timeout, and at once when its caller has gone", async () => {
    const sessions = [{ sessionId: await a.open(), cursor: 1 }];
    const gone = new AbortController();
    const aborted = b.engine.wait("local", { sessions, until: "news", timeoutMs: 600_000, signal: gone.signal });
    gone.abort();
    expect(await aborted).toEqual({ woke: undefined });
    const request: WaitRequest = { sessions, until: "end", timeoutMs: 0, signal: never };
    expect(await b.engine.wait("local", request)).toEqual({ woke: undefined });
  });

  it("the process of an idle session is closed at its time, and the session resumed for the next prompt", async () => {
    const id = await a.openIdle();
    await world.clock.pass(POLICY.idleProcessMs - SECOND);
    expect(a.runtime.lastProcess(id).gone).toBe(false);
    await world.clock.pass(SECOND);
    await a.waitForEvent(id, "process.exited");
    await a.engine.prompt("local", id, { text: "again" });
    expect(a.runtime.lastProcess(id)).toMatchObject({ first: false, gone: false, calls: ["push again"] });
  });
});
