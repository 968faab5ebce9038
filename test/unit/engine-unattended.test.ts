import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { StoredEvent } from "../../src/domain/event.ts";
import { memoryStore } from "../kit/store/memory.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { TestNode } from "../kit/step/two-nodes.ts";
import { SECOND } from "../kit/step/walk.ts";

/** Attendance of sessions on a server that outlives its clients, and notices of unattended work. */

const UNATTENDED = {
  afterMs: 100 * SECOND,
  maxMs: 3_600 * SECOND,
  reach: () => ({ caller: false, user: false }),
  onReach: () => undefined,
};

let clock: ManualClock;
let [daemon, server] = [] as unknown as [TestNode, TestNode];

beforeEach(() => {
  clock = new ManualClock();
  const store = memoryStore(clock);
  daemon = new TestNode(store.connect("daemon"), clock, { unattended: UNATTENDED });
  server = new TestNode(store.connect("server"), clock);
});
afterEach(async () => Promise.all([daemon, server].map(async ({ backend }) => backend.close())));

const isNotice = ({ type }: StoredEvent) => type === "notice";
/** Reads the store, because a call of the engine would count as attendance. */
const notices = async (id: string) => (await daemon.backend.log.read(id, 1, 1_000)).filter(isNotice).length;

async function attendRepeatedly(
  by: TestNode,
  id: string,
  how: (by: TestNode, id: string) => Promise<unknown>,
): Promise<number> {
  for (let round = 0; round < 8; round += 1) {
    await how(by, id);
    await clock.pass(30 * SECOND);
  }
  return notices(id);
}

describe("an attended session", () => {
  it.each(["daemon", "server"] as const)(
    "a session stays attended while clients of the %s read its state",
    async (name) => {
      const by = { daemon, server }[name];
      const id = await daemon.open();
      expect(await attendRepeatedly(by, id, async ({ engine }) => engine.get("local", id))).toBe(0);
      await clock.pass(120 * SECOND);
      expect(await notices(id)).toBe(1);
    },
  );

  it("a session stays attended while a client waits in one long call", async () => {
    const id = await daemon.open();
    const stop = new AbortController();
    const request = { sessions: [{ sessionId: id, cursor: 100 }], until: "end" as const, timeoutMs: 1e9 };
    const waiting = daemon.engine.wait("local", { ...request, signal: stop.signal });
    expect(await attendRepeatedly(daemon, id, async () => Promise.resolve())).toBe(0);
    stop.abort();
    await waiting;
    await clock.pass(120 * SECOND);
    expect(await notices(id)).toBe(1);
  });
});

describe("an unattended session", () => {
  it("a session becomes unattended even if clients list sessions and a webhook receives its requests", async () => {
    const id = await daemon.open();
    const how = async ({ engine }: TestNode) => {
      await engine.list({ principal: "local", limit: 9 });
      await engine.delivered("local", id, [{ requestId: "?", whole: true, approver: "webhook" }]);
    };
    expect(await attendRepeatedly(daemon, id, how)).toBe(1);
  });
});

describe("unattended work", () => {
  const take = async () => (await daemon.engine.takeUnattended("local")).map(({ id }) => id);

  it("unattended work is reported once, only for sessions that worked and that no client has read since", async () => {
    const [told, attended] = [await daemon.open(), await daemon.open()];
    await daemon.openIdle();
    await clock.pass(120 * SECOND);
    await daemon.engine.get("local", attended);
    expect(await take()).toEqual([told]);
    await expect.poll(take).toEqual([]);
  });

  it("after the server has ended, another server reports unattended work from the row of the session", async () => {
    const id = await daemon.open();
    await clock.pass(120 * SECOND);
    daemon.runtime.lastProcess(id).finish();
    await daemon.waitForEvent(id, "turn.ended");
    await daemon.engine.stop(0);
    const [record] = await server.engine.takeUnattended("local");
    expect(record).toMatchObject({ id, state: { lastOutcome: "done", attendance: { work: {} } } });
    await expect.poll(async () => (await server.engine.takeUnattended("local")).length).toBe(0);
  });
});
