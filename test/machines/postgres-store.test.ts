import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { VERSIONS } from "../../src/store/format.ts";
import { describePostgres, useDatabase } from "../kit/postgres/database.ts";
import { insertRows } from "../kit/postgres/stored-rows.ts";
import { PostgresStore } from "../kit/postgres/store.ts";
import { storeSuite } from "../kit/store/suite.ts";
import { expectPresentShape, readRows } from "../kit/store/stored-rows.ts";
import { claimLease, notice, range, session, take, TTL, write } from "../kit/store/vocabulary.ts";

describePostgres("a store on PostgreSQL", () => {
  const database = useDatabase();

  storeSuite("postgres", async () => Promise.resolve(new PostgresStore(database())));

  let store: PostgresStore;
  beforeEach(() => void (store = new PostgresStore(database())));
  afterEach(async () => store.close());

  it.each(range(1, VERSIONS.length))("sessions stored in format version %i are read completely", async (version) => {
    const rows = await readRows(version);
    await insertRows(store, rows);
    await expectPresentShape(store.connect("reader"), rows);
  });

  describe("servers that start together, of one version or two", () => {
    it("five servers that start on an empty database create the schema once, and all work", async () => {
      const nodes = range(1, 5).map((n) => store.connect(`n${String(n)}`));
      await Promise.all(nodes.map(async (node) => node.leases.heartbeat(TTL)));
      const ids = await Promise.all(nodes.map(async (node) => (await node.rows.create(session())).record.id));
      for (const node of nodes) {
        const found = await node.rows.list({ principal: "local", limit: 9 });
        expect(found.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
      }
      expect(await store.query("SELECT count(*) FROM nodes")).toBe("5");
    });

    it("a server goes on, and another of its version starts, after a newer one has added to the schema", async () => {
      const node = store.connect("old");
      await node.leases.heartbeat(TTL);
      const { id } = (await node.rows.create(session())).record;
      const lease = await claimLease(node, id);
      await write(node, lease, [notice("before")]);
      await store.query(
        "ALTER TABLE sessions ADD COLUMN later text NOT NULL DEFAULT 'x'",
        "ALTER TABLE nodes ADD COLUMN later text",
        "CREATE TABLE later(id text PRIMARY KEY)",
        "UPDATE meta SET value = '1000' WHERE key = 'version'",
      );
      await write(node, lease, [notice("after")]);
      const second = store.connect("also old");
      await second.leases.heartbeat(TTL);
      expect(await second.log.read(id, 1, 9)).toMatchObject([
        { data: { message: "before" } },
        { data: { message: "after" } },
      ]);
      await second.rows.create(session());
      expect(await store.query("SELECT count(*) FROM sessions WHERE later = 'x'")).toBe("2");
      expect(await store.query("SELECT value FROM meta WHERE key = 'version'")).toBe("1000");
    });

    it("a server that a newer one has locked out stores nothing more, and says so", async () => {
      const node = store.connect("old");
      await node.leases.heartbeat(TTL);
      const lease = await claimLease(node, (await node.rows.create(session())).record.id);
      await store.query("UPDATE meta SET value = '1000' WHERE key IN ('version', 'readable_by')");
      const refused = [
        write(node, lease, [notice("late")]),
        node.leases.heartbeat(TTL),
        store.connect("next").maintenance.count(),
      ];
      await Promise.all(refused.map(async (each) => expect(each).rejects.toThrow("Update claude-agents-mcp.")));
      expect(await store.query("SELECT count(*) FROM events")).toBe("0");
    });
  });

  it("a reader whose connection for notifications is killed catches up, and hears of what comes later", async () => {
    const [owner, reader] = [store.connect("owner"), store.connect("reader")];
    await Promise.all([owner, reader].map(async (node) => node.leases.heartbeat(TTL)));
    const lease = await claimLease(owner, (await owner.rows.create(session())).record.id);
    const events = take(3, reader.log.tail(lease.sessionId, 1, new AbortController().signal));
    await write(owner, lease, [notice("1")]);
    // Polls, because a node begins to listen in the background.
    const cut = async () => database().disconnect("query ILIKE '%listen%' AND state = 'idle'");
    await expect.poll(cut).toBeGreaterThan(0);
    await write(owner, lease, [notice("2")]);
    await write(owner, lease, [notice("3")]);
    expect((await events).map(({ id }) => id)).toEqual([1, 2, 3]);
  });
});
