import pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { FeedQuery, Lease, SessionBackend } from "../../src/engine/ports.ts";
import { TcpProxy } from "../kit/faults/tcp-proxy.ts";
import { describePostgres, useDatabase } from "../kit/postgres/database.ts";
import { openPostgres, PostgresStore } from "../kit/postgres/store.ts";
import { claimLease, session, TTL, waits, write } from "../kit/store/vocabulary.ts";

/** The order of commits in the feed, and appends that are cut off. Transactions are held open where they have added an item. */

/** Advisory lock for which a trigger waits after an item is added. */
const HELD = 77;
const WAITS: FeedQuery = { principal: "local", name: "session.waits", filter: {}, limit: 9 };

describePostgres("the feed on PostgreSQL", () => {
  const database = useDatabase();
  let store: PostgresStore;
  let holder: pg.Client;
  beforeEach(async () => {
    store = new PostgresStore(database());
    holder = new pg.Client({ host: "127.0.0.1", ...database().login, database: database().name });
    await holder.connect();
  });
  afterEach(async () => {
    await holder.end();
    await store.close();
  });

  async function connect(nodeId: string): Promise<SessionBackend> {
    const node = store.connect(nodeId);
    await node.leases.heartbeat(TTL);
    return node;
  }

  async function createOwned(node: SessionBackend): Promise<Lease> {
    return claimLease(node, (await node.rows.create(session())).record.id);
  }

  /** Makes appends of a session wait before they commit, until `release`. */
  async function hold({ sessionId }: Lease): Promise<void> {
    await holder.query(`SELECT pg_advisory_lock(${String(HELD)})`);
    await store.query(
      `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock(${String(HELD)}); RETURN NULL; END $$`,
      `CREATE TRIGGER hold AFTER INSERT ON feed FOR EACH ROW WHEN (new.session_id = '${sessionId}')
        EXECUTE FUNCTION hold()`,
    );
  }
  const release = async () => holder.query(`SELECT pg_advisory_unlock(${String(HELD)})`);

  /** Resolves once `count` transactions wait for a lock. */
  async function waitForWaiting(count: number): Promise<void> {
    const waiting = `SELECT count(DISTINCT pid) FROM pg_locks l JOIN pg_stat_activity USING (pid)
      WHERE NOT granted AND datname = current_database()`;
    await expect.poll(async () => store.query(waiting), { timeout: 4_000 }).toBe(String(count));
  }

  it("a reader never sees an item before one with a lower number that is committed later", async () => {
    const [a, b, reader] = [await connect("a"), await connect("b"), await connect("reader")];
    const [one, two] = [await createOwned(a), await createOwned(b)];
    const { cursor: after } = await reader.feed.read(WAITS);
    await hold(one);
    const first = write(a, one, [waits()]);
    await waitForWaiting(1);
    const second = write(b, two, [waits()]);
    await waitForWaiting(2);
    expect(await reader.feed.read({ ...WAITS, after })).toMatchObject({ items: [], cursor: after });
    await release();
    await Promise.all([first, second]);
    const { items } = await reader.feed.read({ ...WAITS, after });
    expect(items.map(({ sessionId }) => sessionId)).toEqual([one.sessionId, two.sessionId]);
  });

  it("without the lock of the feed, the same reader passes by an item: the test above would notice", async () => {
    const [a, b, reader] = [await connect("a"), await connect("b"), await connect("reader")];
    const [one, two] = [await createOwned(a), await createOwned(b)];
    await store.query("CREATE OR REPLACE FUNCTION lock_feed() RETURNS void LANGUAGE sql AS ''");
    const { cursor: after } = await reader.feed.read(WAITS);
    await hold(one);
    const first = write(a, one, [waits()]);
    await waitForWaiting(1);
    await write(b, two, [waits()]);
    const early = await reader.feed.read({ ...WAITS, after });
    expect(early.items.map(({ sessionId }) => sessionId)).toEqual([two.sessionId]);
    await release();
    await first;
    expect(await reader.feed.read({ ...WAITS, after: early.cursor })).toMatchObject({ items: [] });
    expect((await reader.feed.read({ ...WAITS, after })).items).toHaveLength(2);
  });

  it("appends without an item do not wait for those with one", async () => {
    const [a, b] = [await connect("a"), await connect("b")];
    const [one, two] = [await createOwned(a), await createOwned(b)];
    await hold(one);
    const first = write(a, one, [waits()]);
    await waitForWaiting(1);
    await write(b, two, [{ type: "notice", data: { kind: "warning", message: "" } }]);
    const read = async ({ sessionId }: Lease) => b.log.read(sessionId, 1, 9);
    expect([await read(one), await read(two)]).toMatchObject([[], [{ id: 1 }]]);
    await release();
    await first;
  });

  it("an append whose answer is lost is in the feed and in the outbox once", async () => {
    const reader = await connect("reader");
    const proxy = await TcpProxy.open(database().port);
    const location = { ...store.location, url: `${database().url(proxy.port)}?search_path=${store.schema}` };
    const a = openPostgres(location, "a");
    await a.leases.heartbeat(TTL);
    const lease = await createOwned(a);
    const { cursor: after } = await reader.feed.read(WAITS);
    await hold(lease);
    const { state } = (await a.rows.get(lease.sessionId))!;
    const deliveries = [{ target: "operator", messageId: "m1", eventId: 1, name: "asked" }];
    const change = { events: [waits()], at: 1, state: { ...state, lastEventId: 1 }, deliveries };
    const append = a.log.append(lease, change);
    await waitForWaiting(1);
    proxy.cut();
    proxy.continue();
    // The repetition waits for the row of the session, which the first attempt has locked.
    await waitForWaiting(2);
    await release();
    await append;
    expect((await reader.feed.read({ ...WAITS, after })).items).toMatchObject([{ eventId: 1 }]);
    expect(await store.query("SELECT count(*), max(message_id) FROM deliveries")).toBe("1|m1");
    // The owner repeats an append, too.
    await a.log.append(lease, change);
    expect((await reader.feed.read({ ...WAITS, after })).items).toHaveLength(1);
    await a.close();
    await proxy.close();
  });

  it("an append that is killed before its commit leaves nothing, and its repetition is in the feed once", async () => {
    const [a, reader] = [await connect("a"), await connect("reader")];
    const lease = await createOwned(a);
    const { cursor: after } = await reader.feed.read(WAITS);
    await hold(lease);
    const append = write(a, lease, [waits()]);
    await waitForWaiting(1);
    expect(await database().disconnect("wait_event_type = 'Lock'")).toBe(1);
    await waitForWaiting(1);
    expect(await reader.feed.read({ ...WAITS, after })).toMatchObject({ items: [], cursor: after });
    await release();
    await append;
    expect((await reader.feed.read({ ...WAITS, after })).items).toMatchObject([{ eventId: 1 }]);
  });
});
