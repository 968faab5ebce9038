import { afterEach, describe, expect, it } from "vitest";
import type { Command } from "../../src/domain/command.ts";
import type { SessionOptions } from "../../src/domain/options.ts";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import type { PermissionUpdate } from "../../src/domain/permission.ts";
import { statusOf } from "../../src/domain/session.ts";
import {
  type BackendOverride,
  collectErrors,
  LEASE_MS,
  message,
  nodesWithShim,
  SWEEP_MS,
  type TestNode,
  type World,
} from "../kit/step/two-nodes.ts";
import { SHIM } from "../kit/step/walk.ts";

const MASKED = "[masked]";

let world: World;
afterEach(() => world.close());

function start(between?: { a?: BackendOverride; b?: BackendOverride }): World {
  world = nodesWithShim(between);
  return world;
}

/** Kills node a while a session has a request open; the process of the session lives on in its shim. */
async function killOwner(over: Partial<SessionOptions> = {}, between?: { a?: BackendOverride; b?: BackendOverride }) {
  const { a, clock } = start(between);
  const id = await a.open("begin", undefined, over);
  const process = a.runtime.lastProcess(id);
  await a.waitForEvent(id, "process.started");
  process.sayLine(3, message("one"));
  process.sayLine(4, { type: "message", message: { type: "assistant" }, toolUseId: "toolu_1" });
  process.ask("r1");
  process.sayLine(5, { type: "alive" }, message("two"));
  await a.waitForEvent(id, "message", 3);
  a.die();
  clock.advance(LEASE_MS);
  return { ...world, id, former: process };
}

/** Waits until `runtime` has attached to a process, and returns the process. */
async function attachedProcess({ runtime }: TestNode, id: string) {
  await runtime.moments.until(() => runtime.reattached.length > 0);
  return runtime.lastProcess(id);
}

const eventTypes = async (node: TestNode, id: string) => (await node.story(id)).split(" ");

describe("a session whose owner died while its process lives on", () => {
  it.each([
    ["is read", async ({ engine }: TestNode, id: string) => void (await engine.get("local", id))],
    ["is listed", async ({ engine }: TestNode) => void (await engine.list({ principal: "local", limit: 1 }))],
    ["is found by a sweep", async () => world.clock.pass(SWEEP_MS)],
    [
      "gets a command",
      async ({ engine }: TestNode, id: string) => engine.delivered("local", id, [{ requestId: "r1", whole: true }]),
    ],
  ])("a session whose owner died continues in its old process when it %s", async (_, look) => {
    const { b, id } = await killOwner();
    await look(b, id);
    const process = await attachedProcess(b, id);
    const shown = await b.engine.get("local", id);
    expect([statusOf(shown.state), shown.state.requests.map(({ requestId }) => requestId)]).toEqual([
      "waiting_permission",
      ["r1"],
    ]);
    expect(shown.owner).toEqual({ nodeId: "b", alive: true });
    await b.engine.answer(LOCAL_CALLER, id, { requestId: "r1", decision: "allow", by: "caller" });
    process.sayLine(6, message("three"));
    process.promptId = shown.state.turn!.id;
    process.finish();
    expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({ data: { outcome: "done" } });
    const story = await eventTypes(b, id);
    expect(story.filter((type) => /process|turn/.test(type))).toEqual([
      "turn.started",
      "process.started",
      "turn.ended",
    ]);
    expect(b.runtime.leftovers).toEqual([]);
    expect(process.calls).toEqual(["push begin", "answer r1 allow"]);
  });

  it("the next owner attaches with the last line, the open requests and the messages of the turn", async () => {
    const { b, id } = await killOwner();
    await b.engine.get("local", id);
    await attachedProcess(b, id);
    const lease = { epoch: 2 };
    expect(b.runtime.reattached).toMatchObject([
      {
        ...lease,
        sessionId: id,
        processTag: `${id}:1`,
        first: false,
        reattach: {
          ...lease,
          shim: SHIM,
          line: 5,
          open: ["r1"],
          spoken: [{ text: "one" }, { type: "assistant" }, { text: "two" }],
        },
      },
    ]);
    expect((await b.log(id)).at(-1)).toMatchObject({ type: "notice", data: { kind: "owner.changed" } });
  });

  it("the time limit of a request stands still while its session has no owner", async () => {
    const { b, clock, id } = await killOwner();
    clock.advance(24 * 3_600_000);
    const { state } = await b.engine.get("local", id);
    expect(state.requests).toHaveLength(1);
    expect(state.requests[0]!.expiresAt).toBeGreaterThan(clock.now());
  });

  it("clients of a dead owner count as present for 10 s more, so a request is not denied before they return", async () => {
    const { clock } = start();
    const bounds = { afterMs: 100_000, maxMs: 3_600_000, onReach: () => undefined };
    const reaching = (isThere: boolean) => ({
      limits: { unattended: { requests: "deny" as const, maxUsd: 10 } },
      unattended: { ...bounds, reach: () => ({ caller: isThere, user: isThere }) },
    });
    const c = world.connect("c", undefined, reaching(true));
    c.runtime.shim = SHIM;
    const id = await c.openWithRequest();
    c.die();
    clock.advance(LEASE_MS);
    const d = world.connect("d", undefined, reaching(false));
    d.runtime.relationToShims = "ours";
    expect((await d.engine.get("local", id)).state.requests).toHaveLength(1);
    await clock.pass(5_000);
    expect((await d.engine.get("local", id)).state.requests).toHaveLength(1);
    await clock.pass(5_000);
    expect(await d.waitForEvent(id, "permission.answered")).toMatchObject({ data: { behavior: "deny", by: "rule" } });
  });

  it("a process keeps its slot when its session is taken over", async () => {
    const { b, id } = await killOwner();
    expect(await b.backend.leases.atWork()).toEqual([]);
    await b.engine.get("local", id);
    expect(await b.backend.leases.atWork()).toMatchObject([{ id, state: { process: { phase: "live", id: "1" } } }]);
  });

  it("a turn is lost, and its process killed, if lines of the process are missing at the takeover", async () => {
    const { b, id } = await killOwner();
    b.runtime.lostLines = 2;
    await b.engine.get("local", id);
    expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({ data: { outcome: "lost" } });
    expect(await b.story(id)).toMatch(/notice notice process\.exited permission\.answered turn\.ended$/);
    expect((await b.log(id)).findLast(({ type }) => type === "notice")).toMatchObject({ data: { kind: "data_loss" } });
    expect(b.runtime.lastProcess(id).calls).toEqual(["push begin", "kill"]);
    await b.runtime.moments.until(() => b.runtime.leftovers.length > 0);
  });

  it("a turn with `endWithClient` is lost with its owner, and its process is ended, not attached to", async () => {
    const { a, b, clock } = start();
    const request = { options: { cwd: "/repo" }, prompt: { text: "begin", limits: { endWithClient: true } } };
    const { sessionId } = await a.engine.open(LOCAL_CALLER, request);
    await a.waitForEvent(sessionId, "process.started");
    a.die();
    clock.advance(LEASE_MS);
    await b.engine.get("local", sessionId);
    expect(await b.waitForEvent(sessionId, "turn.ended")).toMatchObject({ data: { outcome: "lost" } });
    expect([b.runtime.reattached.length, b.runtime.leftovers.length]).toEqual([0, 1]);
  });

  it("only one of two servers that could attach to a process attaches", async () => {
    const { b, id } = await killOwner();
    const c = world.connect("c");
    c.runtime.relationToShims = "ours";
    await Promise.all([b, c].map(async ({ engine }) => engine.get("local", id)));
    await Promise.all([b, c].map(async ({ engine }) => engine.get("local", id)));
    expect(b.runtime.reattached.length + c.runtime.reattached.length).toBe(1);
    expect((await eventTypes(b, id)).filter((type) => type === "notice")).toHaveLength(1);
  });
});

describe("a session whose process only another daemon may attach to", () => {
  it("the session is shown unchanged; a refused command names the daemon and how long the process is kept", async () => {
    const { b, clock, id } = await killOwner();
    b.runtime.relationToShims = "theirs";
    const before = await b.backend.rows.get(id);
    await clock.pass(SWEEP_MS);
    expect(await b.engine.get("local", id)).toEqual(before);
    expect(await b.engine.list({ principal: "local", limit: 1 })).toEqual([before]);
    const refused = await collectErrors([
      b.engine.prompt("local", id, { text: "go on" }),
      b.engine.cancel("local", id, { by: "ann" }),
    ]);
    const busy = { code: "SESSION_BUSY", sessionId: id, message: expect.stringMatching(/daemon d,.* 300 s/) as string };
    expect(refused).toMatchObject([busy, busy]);
    expect(await b.backend.rows.get(id)).toEqual(before);
  });

  it("the turn is lost once no daemon has its process any more", async () => {
    const { b, clock, id } = await killOwner();
    b.runtime.relationToShims = "theirs";
    await b.engine.get("local", id);
    b.runtime.relationToShims = "gone";
    await clock.pass(SWEEP_MS);
    expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({ data: { outcome: "lost" } });
  });
});

describe("a request that Claude Code sends again after a takeover", () => {
  const input = { command: "make it" };

  it("an open request that is sent again is recorded once", async () => {
    const { b, id } = await killOwner();
    await b.engine.get("local", id);
    const process = await attachedProcess(b, id);
    process.ask("r1");
    process.say(message("then"));
    await b.waitForEvent(id, "message", 4);
    expect((await eventTypes(b, id)).filter((type) => type === "permission.asked")).toHaveLength(1);
    expect(process.calls).toEqual(["push begin"]);
  });

  async function reaskAnswered(mask?: (text: string) => string) {
    const { a, clock } = start();
    const masking = { mask: (event: object) => JSON.parse((mask ?? String)(JSON.stringify(event))) as never };
    const c = world.connect("c", undefined, masking);
    c.runtime.shim = SHIM;
    const id = await c.openWithRequest();
    const updatedPermissions: PermissionUpdate[] = [{ type: "setMode", mode: "plan", destination: "session" }];
    const decision = { behavior: "allow" as const, updatedInput: input, updatedPermissions };
    const data = { requestId: "r1", by: "caller", forSession: false, decision };
    const command: Command = { id: "c1", principal: "local", kind: "answer", data };
    await c.engine.delivered("local", id, [{ requestId: "r1", whole: true }]);
    await a.backend.inbox.send(id, command, 1000);
    c.die();
    clock.advance(LEASE_MS);
    const { b } = world;
    await b.engine.get("local", id);
    const process = await attachedProcess(b, id);
    process.ask("r1");
    return { b, id, process, updatedPermissions };
  }

  it("an answered request that is sent again gets its recorded answer, with the permission changes", async () => {
    const { b, id, process, updatedPermissions } = await reaskAnswered();
    await process.waitForCall("answer r1 allow");
    expect(process.decisions).toEqual([{ behavior: "allow", updatedInput: input, updatedPermissions }]);
    expect(b.runtime.reattached).toMatchObject([{ reattach: { changes: updatedPermissions } }]);
    expect((await eventTypes(b, id)).filter((type) => type.startsWith("permission"))).toHaveLength(2);
  });

  it("an answered request that is sent again is opened anew if masking removed part of its answer from the log", async () => {
    const { b, id, process } = await reaskAnswered((text) => text.replaceAll("make it", MASKED));
    await b.waitForEvent(id, "permission.asked", 2);
    expect((await b.engine.get("local", id)).state.requests).toMatchObject([{ requestId: "r1" }]);
    expect(JSON.stringify(await b.log(id))).not.toContain("make it");
    expect(process.decisions).toEqual([]);
  });
});
