import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { changeStore, DAMAGED_EVENTS, sessionAtRest } from "../kit/store/damage.ts";
import { StoreFile } from "../kit/store/files.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { TestNode } from "../kit/step/two-nodes.ts";
import { claimLease, command, done, LONG, never, session, T0, take, TTL } from "../kit/store/vocabulary.ts";

/** Unreadable events, commands and node rows: each fault stays limited to its own entry. */

let store: StoreFile;
let a: TestNode;
beforeEach(async () => {
  store = await StoreFile.make();
  a = new TestNode(store.connect("a"), new ManualClock());
  await a.backend.leases.heartbeat(TTL);
});
afterEach(async () => store.close());

const damage = async (...statements: string[]) => changeStore(store.file, ...statements);

it("an unreadable event is reported as lost in its place, and the events around it are read", async () => {
  for (const [what, value, why] of DAMAGED_EVENTS) {
    const id = await sessionAtRest(a);
    await damage(`UPDATE events SET event = ${value} WHERE session_id = '${id}' AND id = 2`);
    const events = await a.engine.read("local", id, 1, 9);
    const data = { kind: "data_loss", message: `Event 2 cannot be read (${why}).`, details: { type: "notice" } };
    expect([what, ...events]).toMatchObject([what, { id: 1 }, { id: 2, type: "notice", data }, { id: 3 }]);
    expect((await take(3, a.backend.log.tail(id, 1, never))).map((event) => event.id)).toEqual([1, 2, 3]);
    await a.engine.prompt("local", id, { text: "go on" });
    await a.runtime.lastProcess(id).waitForCall("push go on");
  }
});

it("a session whose id is not text is left out of lists and searches", async () => {
  const [id, other] = [await sessionAtRest(a), await sessionAtRest(a)];
  await damage("PRAGMA foreign_keys = OFF", `UPDATE sessions SET id = x'00ff', at_work = 1 WHERE id = '${other}'`);
  const listed = await a.engine.list({ principal: "local", limit: 9 });
  expect(listed.map((each) => each.id)).toEqual([id]);
  expect(await a.backend.leases.abandoned(9)).toEqual([]);
});

it("an event of an unknown kind is read unchanged", async () => {
  const id = await sessionAtRest(a);
  const stored = `{"v":1,"type":"moon.risen","data":{"phase":1}}`;
  await damage(`UPDATE events SET event = '${stored}' WHERE session_id = '${id}' AND id = 2`);
  expect((await a.engine.read("local", id, 2, 1))[0]).toEqual({
    id: 2,
    at: T0,
    type: "moon.risen",
    data: { phase: 1 },
  });
});

it("an unreadable prompt ends its turn as lost, and the log says why", async () => {
  const id = await a.open("first");
  await a.runtime.lastProcess(id).waitForCall("push first");
  await a.engine.prompt("local", id, { text: "second", whenBusy: "queue" });
  const { eventId } = (await a.engine.get("local", id)).state.queue[0]!;
  await damage(`UPDATE events SET event = '{' WHERE session_id = '${id}' AND id = ${String(eventId)}`);
  a.runtime.lastProcess(id).finish();
  const lost = await a.waitForEvent(id, "turn.ended", 2);
  expect(lost.data).toMatchObject({ outcome: "lost", isError: true });
  const messages = (await a.log(id)).flatMap((event) => (event.type === "notice" ? [event.data.message] : []));
  expect(messages).toContain(`The prompt cannot be read (event ${String(eventId)}). Send it again.`);
  await a.engine.drain();
});

describe("a command on its way to an owner", () => {
  it("an unreadable command is refused, and the commands behind it are answered", async () => {
    const { id } = (await a.backend.rows.create(session())).record;
    const lease = await claimLease(a.backend, id);
    const b = store.connect("b");
    await b.leases.heartbeat(TTL);
    const sent = ["'{'", "''", "x'00'"].map((_, n) => ({ ...command(), id: `c${String(n)}` }));
    const replies = sent.map(async (each) => b.inbox.send(id, each, LONG));
    const last = b.inbox.send(id, { ...command(), id: "last" }, LONG);
    await expect
      .poll(async () => (await rowsOf("SELECT count(*) AS n FROM commands WHERE data <> ''"))[0])
      .toEqual({ n: 4 });
    await damage(
      ...["'{'", "''", "x'00'"].map((value, n) => `UPDATE commands SET data = ${value} WHERE id = 'c${String(n)}'`),
    );
    const [item] = await take(1, a.backend.inbox.receive(lease, never));
    expect(item!.command.id).toBe("last");
    await item!.ack(done(7));
    const refusal = { code: "INTERNAL", message: "The command could not be read from the store. Send it again." };
    expect(await Promise.all(replies)).toEqual(sent.map(() => ({ ok: false, refusal })));
    expect(await last).toEqual(done(7));
    await damage(`UPDATE commands SET reply = '{"ok":' WHERE id = 'last'`);
    const again = await b.inbox.send(id, { ...command(), id: "last" }, LONG);
    expect(again).toMatchObject({ ok: false, refusal: { message: expect.stringContaining("cannot be read") } });
  });
});

describe("the row of a node", () => {
  it("a damaged node row counts by its readable part, and the node's next heartbeat writes it again", async () => {
    const id = await a.openIdle();
    const b = store.connect("b");
    await b.leases.heartbeat(TTL);
    for (const column of ["host", "pid", "started_at", "expires_at", "urls"]) {
      await damage(`UPDATE nodes SET ${column} = x'00' WHERE id = 'a'`);
      await b.leases.heartbeat(TTL);
      expect(await b.rows.get(id)).toMatchObject({ owner: { nodeId: "a", alive: true } });
      expect(await b.leases.claim(id)).toBeUndefined();
      expect(await b.leases.abandoned(9)).toEqual([]);
      expect(await b.leases.urls()).toEqual([]);
      await a.backend.leases.heartbeat(TTL);
      expect(await rowsOf(`SELECT typeof(${column}) AS type FROM nodes WHERE id = 'a'`)).not.toEqual([
        { type: "blob" },
      ]);
    }
    await a.engine.drain();
  });
});

async function rowsOf(sql: string): Promise<unknown[]> {
  const database = await openDatabase(store.file);
  const rows = z.array(z.looseObject({})).parse(database.prepare(sql).all({}));
  database.close();
  return rows;
}
