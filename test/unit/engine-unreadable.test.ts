import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { initialState, statusOf, type SessionState } from "../../src/domain/session.ts";
import type { SessionBackend } from "../../src/engine/ports.ts";
import { changeStore, DAMAGES, HARMLESS, sessionAtRest } from "../kit/store/damage.ts";
import { StoreFile } from "../kit/store/files.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { collectErrors, TestNode } from "../kit/step/two-nodes.ts";
import { claimLease, LONG, never, session, T0, TTL } from "../kit/store/vocabulary.ts";

/** Rows that are damaged in the file while servers use the store. A damaged row must affect its own session only. */

let store: StoreFile;
let a: TestNode;
beforeEach(async () => {
  store = await StoreFile.make();
  a = new TestNode(store.connect("a"), new ManualClock());
  await a.backend.leases.heartbeat(TTL);
});
afterEach(async () => store.close());

const damage = async (...statements: string[]) => changeStore(store.file, ...statements);

const AT_WORK: Partial<SessionState> = { process: { phase: "live", id: "1", since: T0 } };

/** Leaves `count` sessions at work behind a node that is gone. */
async function leaveAtWork(count: number, over = AT_WORK): Promise<string[]> {
  const gone = store.connect("gone", { process: { pid: 999_999, startedAt: "before" } });
  await gone.leases.heartbeat(TTL);
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const { id } = (await gone.rows.create(session({ at: T0 + n }))).record;
    const lease = await claimLease(gone, id);
    await gone.log.append(lease, { events: [], at: T0 + n, state: { ...initialState(T0), ...over } });
    ids.push(id);
  }
  await gone.close();
  return ids;
}

/** Connects a node to which the process of `gone` has ended. */
const connectLater = (name: string): SessionBackend =>
  store.connect(name, { isRunning: async (pid) => Promise.resolve(pid === process.pid) });

describe("sessions with an unreadable row", () => {
  const expectedReason = ({ why }: (typeof DAMAGES)[number]): unknown =>
    typeof why === "string" ? why : expect.stringMatching(why);
  const idOf = new Map<string, string>();
  let sound: string;
  beforeEach(async () => {
    sound = await sessionAtRest(a);
    for (const { sql, what } of DAMAGES) {
      const id = await sessionAtRest(a);
      idOf.set(what, id);
      await damage(sql(id));
    }
  });

  it("an unreadable session is shown as failed, with the reason, and its log can be read", async () => {
    for (const each of DAMAGES) {
      const id = idOf.get(each.what)!;
      const record = await a.engine.get("local", id);
      expect({ what: each.what, ...record }).toMatchObject({
        what: each.what,
        unreadable: { why: expectedReason(each) },
        spec: { cwd: "/repo" },
      });
      expect(statusOf(record.state)).toBe("error");
      expect(await a.engine.read("local", id, 1, 9)).toHaveLength(3);
      expect(await a.backend.rows.raw(id)).toMatchObject({ id });
      const sessions = [{ sessionId: id, cursor: 4 }];
      const { woke } = await a.engine.wait("local", { sessions, until: "end", timeoutMs: LONG, signal: never });
      expect(woke).toBe(id);
    }
  });

  it("unreadable sessions are listed with the others on every page, as failed", async () => {
    const listed = async (limit: number, statuses?: ("error" | "idle")[]) =>
      (await a.engine.list({ principal: "local", limit, ...(statuses && { statuses }) }))
        .map(({ id }) => id)
        .toSorted();
    const damaged = DAMAGES.filter(({ why }) => typeof why === "string").map(({ what }) => idOf.get(what)!);
    const newer = DAMAGES.length - damaged.length;
    expect(await listed(2, ["idle"])).toEqual([sound]);
    expect(await listed(99)).toEqual([sound, ...idOf.values()].toSorted());
    expect(await listed(99, ["error"])).toEqual(damaged.toSorted());
    expect(await a.backend.maintenance.count()).toEqual({ idle: 1 + newer, error: damaged.length });
  });

  it("an unreadable session takes no work, and keeps no other session from work", async () => {
    const { engine } = a;
    const prompt = { text: "go on" };
    for (const { what } of DAMAGES) {
      const id = idOf.get(what)!;
      const errors = await collectErrors([
        engine.prompt("local", id, prompt),
        engine.fork(LOCAL_CALLER, id, prompt),
        engine.adopt(LOCAL_CALLER, { sessionId: id, options: {}, fork: true, prompt }),
        engine.control(LOCAL_CALLER, id, { do: "usage" }, "x"),
        engine.answer(LOCAL_CALLER, id, { requestId: "r", decision: "deny", by: "caller" }),
        engine.interrupt("local", id, "x"),
        engine.cancel("local", id, { by: "x" }),
        engine.close("local", id, "x"),
        engine.workTree("local", id),
      ]);
      const message = expect.stringContaining("The session cannot be read (");
      expect([what, ...errors]).toMatchObject([what, ...errors.map(() => ({ code: "INTERNAL", message }))]);
    }
    const begun = await a.open();
    await a.runtime.lastProcess(begun).waitForCall("push begin");
    await engine.prompt("local", sound, prompt);
    await a.runtime.lastProcess(sound).waitForCall("push go on");
  });

  it("unreadable sessions are deleted one by one, and by age", async () => {
    const [first, ...others] = idOf.values();
    await a.engine.delete("local", first!, "x");
    expect(await a.backend.rows.get(first!)).toBeUndefined();
    const query = { before: Number.MAX_SAFE_INTEGER, statuses: ["error", "idle"] as const, limit: 99 };
    expect(await a.backend.maintenance.purge(query)).toBe(others.length + 1);
    expect(await a.backend.maintenance.count()).toEqual({});
  });
});

it("a session with only a damaged title or number takes prompts", async () => {
  for (const { sql, what } of HARMLESS) {
    const id = await sessionAtRest(a);
    await damage(sql(id));
    expect([what, (await a.engine.list({ principal: "local", limit: 9 })).length]).not.toEqual([what, 0]);
    expect((await a.engine.get("local", id)).unreadable).toBeUndefined();
    await a.engine.prompt("local", id, { text: "go on" });
    await a.runtime.lastProcess(id).waitForCall("push go on");
  }
  await a.backend.maintenance.purge({ before: 0, statuses: ["idle"], limit: 9 });
});

it("a session with an unreadable principal is found by no caller, and keeps nothing from others", async () => {
  const [sound, id] = [await sessionAtRest(a), await sessionAtRest(a)];
  await damage(`UPDATE sessions SET principal = 'x' WHERE id = '${id}'`);
  const [error] = await collectErrors([a.engine.get("local", id)]);
  expect(error).toMatchObject({ code: "SESSION_NOT_FOUND" });
  expect(await a.engine.list({ principal: "local", limit: 9 })).toMatchObject([{ id: sound }]);
  expect(await a.backend.rows.get(id)).toMatchObject({
    principal: "",
    unreadable: { why: "principal: not valid JSON" },
  });
});

describe("unreadable sessions that a dead server has left", () => {
  it("unreadable sessions do not take the places of readable ones among the abandoned, however many there are", async () => {
    const ids = await leaveAtWork(70);
    await damage(
      `UPDATE sessions SET state = '{' WHERE id IN (${ids
        .slice(0, 60)
        .map((id) => `'${id}'`)
        .join()})`,
    );
    const b = connectLater("b");
    await b.leases.heartbeat(TTL);
    expect((await b.leases.abandoned(9)).map(({ id }) => id)).toEqual(ids.slice(60, 69));
    expect((await b.leases.abandoned(99)).map(({ id }) => id)).toEqual(ids.slice(60));
    // Node c takes the readable sessions over, and the others count as `error`.
    const later = new TestNode(connectLater("c"), new ManualClock());
    await later.waitForEvent(ids[69]!, "process.exited");
    expect(await b.maintenance.count()).toMatchObject({ error: 60 });
    await later.engine.drain();
  });

  it("a session that cannot be taken over keeps no other from being listed and taken over", async () => {
    const [bad = "", good = ""] = await leaveAtWork(2);
    const { leases, ...rest } = connectLater("b");
    const claim = async (id: string) => (id === bad ? Promise.reject(new Error("no")) : leases.claim(id));
    const b = new TestNode({ ...rest, leases: { ...leases, claim } }, new ManualClock());
    const listed = await b.engine.list({ principal: "local", limit: 9 });
    expect(listed.map(({ id }) => id).toSorted()).toEqual([bad, good].toSorted());
    await b.waitForEvent(good, "process.exited");
    expect(b.complaints).toContain("a session was not taken over");
    await b.engine.drain();
  });

  it("an unreadable session counts as a process only while its owner lives", async () => {
    const [id = ""] = await leaveAtWork(1);
    const own = await a.openIdle();
    await damage(`UPDATE sessions SET state = '{' WHERE id IN ('${id}', '${own}')`);
    const b = connectLater("b");
    await b.leases.heartbeat(TTL);
    expect(await b.leases.atWork()).toMatchObject([{ id: own, unreadable: { why: "state: not valid JSON" } }]);
    await a.engine.drain();
  });
});

describe("a session whose row becomes unreadable while its owner lives", () => {
  it("a session with an unreadable row is interrupted and closed through another server, and readable afterwards", async () => {
    const id = await a.openWithRequest();
    const b = new TestNode(store.connect("b"), new ManualClock());
    await damage(`UPDATE sessions SET state = '{' WHERE id = '${id}'`);
    expect(await b.engine.get("local", id)).toMatchObject({ unreadable: { isNewer: false } });
    expect(await collectErrors([b.engine.prompt("local", id, { text: "x" })])).toMatchObject([{ code: "INTERNAL" }]);
    await b.engine.interrupt("local", id, "x");
    await a.runtime.lastProcess(id).waitForCall("interrupt");
    expect((await b.engine.get("local", id)).unreadable).toBeUndefined();
    await damage(`UPDATE sessions SET state = '{' WHERE id = '${id}'`);
    await b.engine.close("local", id, "x");
    expect(statusOf((await b.engine.get("local", id)).state)).toBe("closed");
    await Promise.all([a, b].map(async ({ engine }) => engine.drain()));
  });
});
