import { afterEach, beforeEach, expect, it } from "vitest";
import type { NewDelivery, SessionBackend } from "../../src/engine/ports.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { StoreFile } from "../kit/store/files.ts";
import { claimLease, session, TTL, waits } from "../kit/store/vocabulary.ts";

/** The feed and the outbox of sessions that are kept in memory. */

let store: StoreFile;
let node: SessionBackend;
beforeEach(async () => {
  store = await StoreFile.make();
  node = store.connect("node");
  await node.leases.heartbeat(TTL);
});
afterEach(async () => store.close());

const WAITS = { principal: "local", name: "session.waits", filter: {} } as const;
const SCOPE = { targets: ["operator"], hasSubscribers: true };
const message = (messageId: string): NewDelivery => ({ target: "operator", messageId, eventId: 1, name: "asked" });
const take = async (by: SessionBackend, limit = 9) => by.outbox.take({ ...SCOPE, except: [], limit, holdMs: 60_000 });

async function countRows(): Promise<unknown> {
  const database = await openDatabase(store.file);
  try {
    const sql = "SELECT (SELECT count(*) FROM feed) AS feed, (SELECT count(*) FROM deliveries) AS deliveries";
    return database.prepare(sql).get({});
  } finally {
    database.close();
  }
}

it("a session kept in memory has no item in the feed, and its deliveries are sent by its own server only", async () => {
  const terms = { ...WAITS, id: "s", url: "https://example.com", secret: "whsec_1", ttlMs: 1e9 };
  await node.outbox.subscribe(terms, { start: {}, limits: { total: 9, perPrincipal: 9 }, graceMs: 0 });
  const { id } = (await node.rows.create(session({ spec: { cwd: "/repo", persistSession: false } }))).record;
  const lease = await claimLease(node, id);
  const { state } = (await node.rows.get(id))!;
  const { cursor } = await node.feed.read({ ...WAITS, limit: 9 });
  const change = { events: [waits()], at: store.time(), state: { ...state, lastEventId: 1 } };
  await node.log.append(lease, { ...change, deliveries: [message("m1"), message("m2")] });
  expect(await node.feed.read({ ...WAITS, after: cursor, limit: 9 })).toMatchObject({ items: [], cursor });
  expect(await countRows()).toEqual({ feed: 0, deliveries: 0 });
  expect([await take(store.connect("other")), await node.outbox.dueInMs(SCOPE)]).toEqual([[], 0]);
  const [taken] = await take(node, 1);
  expect(taken).toMatchObject({ messageId: "m1", sessionId: id });
  expect(await node.outbox.settle(taken!, { is: "delivered" })).toBe("delivered");
  await node.outbox.withdraw(id, "operator", "m2");
  await node.outbox.add(id, [message("m3")]);
  await node.outbox.add("in the file", [message("m4"), message("m5")]);
  expect((await take(node, 2)).map(({ messageId }) => messageId)).toEqual(["m3", "m4"]);
  expect(await countRows()).toEqual({ feed: 0, deliveries: 2 });
});
