import { createHash, randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Place } from "../../src/domain/place.ts";
import { initialState, type SessionState } from "../../src/domain/session.ts";
import {
  FencedError,
  type InboxItem,
  type NodeFacts,
  type SessionBackend,
  type StoreMachines,
} from "../../src/engine/ports.ts";
import { openStore, type StoreOptions } from "../../src/store/open.ts";
import { Database, describePostgres } from "../kit/postgres/database.ts";
import { claimLease, command, done, LONG, never, session, T0, take, TTL, write } from "../kit/store/vocabulary.ts";

/** Parts of a store for several machines. Each node of these tests has a name, a folder and labels of its own. */

const FACTS: NodeFacts = {
  name: "",
  version: "1",
  folders: ["/src"],
  sharedFolders: [],
  labels: {},
  maxLive: 4,
  principals: "digest",
};
/** Interval of renewals, ms: less than half a lease. */
const RENEW_MS = 10_000;

type Node = SessionBackend & { readonly machines: StoreMachines };

describePostgres("a store of several machines", () => {
  let database: Database;
  let nodes: Node[];
  beforeEach(async () => {
    database = await Database.create();
    nodes = [];
  });
  afterEach(async () => {
    await Promise.all(nodes.map(async (node) => node.close()));
    await database.drop();
  });

  async function connect(facts: Partial<NodeFacts>, over: Partial<StoreOptions> = {}): Promise<Node> {
    const silent = (): void => undefined;
    const backend = openStore(
      { kind: "postgres", url: database.url(), passwordFile: database.passwordFile },
      {
        nodeId: randomUUID(),
        process: { pid: process.pid, startedAt: "now" },
        isRunning: async () => Promise.resolve(true),
        clock: { now: () => Date.now(), tick: () => performance.now() },
        log: { debug: silent, info: silent, warn: silent, error: silent },
        facts: { ...FACTS, ...facts },
        ...over,
      },
    );
    const node = { ...backend, machines: backend.machines! };
    nodes.push(node);
    await node.leases.heartbeat(TTL);
    return node;
  }

  /** Lets time pass on the clock of the database, in steps in which `living` nodes renew their leases. */
  let passed = 0;
  async function advance(ms: number, ...living: Node[]): Promise<void> {
    for (let rest = ms; rest > 0; rest -= RENEW_MS) {
      passed += Math.min(rest, RENEW_MS);
      const clock = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${String(passed)}`;
      await database.query(
        `CREATE OR REPLACE FUNCTION claude_agents_mcp.now_ms() RETURNS bigint LANGUAGE sql AS 'SELECT ${clock}'`,
      );
      for (const node of living) await node.leases.heartbeat(TTL);
    }
  }

  const atWork: SessionState = { ...initialState(T0), process: { phase: "live", id: "p", since: T0 } };
  const create = async (node: Node, place?: Place, state = initialState(T0)): Promise<string> =>
    (await node.rows.create(session({ state, ...(place && { place }) }))).record.id;
  const nodesNamed = async (name: string, at: Node) => (await at.machines.nodes()).filter((node) => node.name === name);

  it("lists its nodes with their facts, and a drain lasts beyond a restart until it is ended", async () => {
    const a = await connect({ name: "a", labels: { gpu: "yes" } });
    const b = await connect({ name: "b", sharedFolders: [{ folder: "/mnt", volume: "v" }] });
    await claimLease(a, await create(a, undefined, atWork));
    await claimLease(a, await create(a));
    const [found] = await nodesNamed("a", b);
    expect(found).toMatchObject({ nodeId: a.nodeId, labels: { gpu: "yes" }, isAlive: true, isDraining: false });
    expect(found).toMatchObject({ sessions: 1, folders: ["/src"], principals: "digest" });
    expect(await b.machines.setDraining("a", true)).toBe(1);
    expect(await b.machines.setDraining("nobody", true)).toBe(0);
    await connect({ name: "a" });
    const drained = (await a.machines.nodes()).map(({ isDraining, name }) => `${name} ${String(isDraining)}`);
    expect(drained.toSorted()).toEqual(["a true", "a true", "b false"]);
    expect(await a.machines.setDraining("a", false)).toBe(2);
    expect((await b.machines.nodes()).some(({ isDraining }) => isDraining)).toBe(false);
    await advance(TTL + RENEW_MS, b);
    expect((await nodesNamed("a", b)).map(({ isAlive }) => isAlive)).toEqual([false, false]);
  });

  it("has one key for each purpose", async () => {
    const [a, b] = [await connect({ name: "a" }), await connect({ name: "b" })];
    const keys = await Promise.all([a, b, a, b].map(async (node) => node.machines.key("ids")));
    expect(new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size).toBe(1);
    expect(keys[0]).toHaveLength(32);
    expect(Buffer.from(await b.machines.key("other")).equals(keys[0]!)).toBe(false);
  });

  it("offers a session to nodes that have its place, until one claims it", async () => {
    const volume = { sharedFolders: [{ folder: "/mnt", volume: "v" }] };
    const [a, b, c] = [
      await connect({ name: "a" }),
      await connect({ name: "b", ...volume }),
      await connect({ name: "c" }),
    ];
    const ids = [await create(a, { node: "c" }), await create(a, { volume: "v" })] as const;
    const offered = Promise.all([c, b].map(async (node) => take(2, node.machines.offers(never))));
    for (const id of [...ids, ids[0]]) await a.machines.offer(id);
    expect(await offered).toEqual([
      [ids[0], ids[0]],
      [ids[1], ids[1]],
    ]);
    await a.machines.setDraining("c", true);
    const none = new AbortController();
    const drained = c.machines.offers(none.signal)[Symbol.asyncIterator]().next();
    const lease = await claimLease(b, ids[1]);
    await b.leases.release(lease);
    const later = take(1, b.machines.offers(never));
    const [next] = [await create(a, { node: "b" })];
    await a.machines.offer(next);
    expect(await later).toEqual([next]);
    none.abort();
    expect(await drained).toEqual({ done: true, value: undefined });
  });

  it("binds a session placed by labels to the first of its nodes that claims it", async () => {
    const gpu = { labels: { gpu: "yes", zone: "1" } };
    const [a, b] = [await connect({ name: "a" }), await connect({ name: 'b "\u{1f642}', ...gpu })];
    const id = await create(a, { labels: { gpu: "yes" } });
    await a.machines.offer(id);
    expect(await take(1, b.machines.offers(never))).toEqual([id]);
    const steward = await claimLease(a, id);
    expect((await a.rows.get(id))!.place).toEqual({ labels: { gpu: "yes" } });
    await a.leases.release(steward);
    await claimLease(b, id);
    expect((await a.rows.get(id))!.place).toEqual({ node: 'b "\u{1f642}' });
  });

  it("leaves abandoned sessions to the nodes that have their place, and others to any node once", async () => {
    const gpu = { labels: { gpu: "yes" } };
    const [a, b] = [await connect({ name: "a" }), await connect({ name: "b", ...gpu })];
    const places: (Place | undefined)[] = [
      undefined,
      { node: "a" },
      { node: "b" },
      { node: "gone" },
      gpu,
      { volume: "v" },
    ];
    const ids: string[] = [];
    for (const place of places) ids.push(await create(a, place, atWork));
    const seenBy = async (node: Node) => {
      const found = new Set((await node.leases.abandoned(9)).map(({ id }) => id));
      return ids.flatMap((id, index) => (found.has(id) ? [index] : []));
    };
    expect([await seenBy(a), await seenBy(b)]).toEqual([
      [0, 1, 3, 5],
      [0, 2, 3, 4, 5],
    ]);
    const lease = await claimLease(a, ids[3]!);
    const waiting = { ...initialState(T0), waiting: { kind: "workspace", since: T0 } } as unknown as SessionState;
    await a.log.append(lease, { events: [], at: T0, state: waiting });
    const waits = "UPDATE claude_agents_mcp.sessions SET at_work = waits WHERE waits = 1";
    await database.query(waits);
    await a.leases.release(lease);
    expect([await seenBy(a), await seenBy(b)]).toEqual([
      [0, 1, 5],
      [0, 2, 4, 5],
    ]);
    const gone = await connect({ name: "gone" });
    expect(await seenBy(gone)).toContain(3);
    await b.machines.setDraining("gone", true);
    expect(await seenBy(gone)).not.toContain(3);
  });

  it("takes nothing over after an outage for all nodes before a whole lease has passed", async () => {
    const [a, b] = [await connect({ name: "a" }), await connect({ name: "b" })];
    const id = await create(a);
    await claimLease(a, id);
    await advance(10 * TTL);
    expect(await b.leases.heartbeat(TTL)).toBe(true);
    expect(await b.leases.claim(id)).toBeUndefined();
    expect((await b.rows.get(id))!.owner).toMatchObject({ nodeId: a.nodeId, alive: true });
    await advance(TTL, b);
    expect(await b.leases.claim(id)).toMatchObject({ tookOver: true, epoch: 2 });
    expect(await a.leases.heartbeat(TTL)).toBe(true);
    expect(await a.leases.heartbeat(TTL)).toBe(false);
  });

  it("takes a session of an exited process of this machine at once", async () => {
    const a = await connect({ name: "a" });
    let runs = true;
    const b = await connect({ name: "b" }, { isRunning: async () => Promise.resolve(runs) });
    const id = await create(a);
    await claimLease(a, id);
    expect(await b.leases.claim(id)).toBeUndefined();
    runs = false;
    expect(await b.leases.claim(id)).toMatchObject({ tookOver: true });
  });

  it("keeps copies of conversations, fenced and deleted with their session", async () => {
    const [a, b] = [await connect({ name: "a" }), await connect({ name: "b" })];
    const id = await create(a, { volume: "v" });
    const lease = await claimLease(a, id);
    const bytes = Buffer.from(Array.from({ length: 1000 }, (_, n) => n % 256));
    const copies = a.machines.transcripts;
    await copies.write(lease, "x.jsonl", 0, bytes.subarray(0, 300));
    await copies.write(lease, "x.jsonl", 300, bytes.subarray(300, 700));
    await copies.write(lease, "x.jsonl", 650, bytes.subarray(650));
    await expect(copies.write(lease, "x.jsonl", 1001, bytes)).rejects.toThrow("only 1000 bytes");
    await copies.write(lease, "left.jsonl", 0, bytes);
    const file = { path: "x.jsonl", size: 1000, digest: createHash("sha256").update(bytes).digest("hex") };
    const sealed = { transcriptId: "t", eventId: 3, files: [file] };
    await expect(copies.seal(lease, { ...sealed, files: [{ ...file, size: 1001 }] })).rejects.toThrow("only a part");
    expect(await copies.manifest(id)).toBeUndefined();
    await copies.seal(lease, sealed);
    expect(await b.machines.transcripts.manifest(id)).toEqual(sealed);
    const other = b.machines.transcripts;
    for (const [offset, length] of [
      [0, 1000],
      [290, 20],
      [299, 2],
      [999, 9],
      [1000, 1],
    ] as const) {
      expect(Buffer.from(await other.read(id, "x.jsonl", offset, length))).toEqual(
        bytes.subarray(offset, offset + length),
      );
    }
    expect(await copies.read(id, "left.jsonl", 0, 9)).toHaveLength(0);
    await a.leases.release(lease);
    await expect(copies.write(lease, "x.jsonl", 0, bytes)).rejects.toThrow(FencedError);
    await expect(copies.seal(lease, sealed)).rejects.toThrow(FencedError);
    await a.maintenance.purge({ before: T0 + 1, statuses: ["idle"], limit: 9 });
    expect([await copies.manifest(id), (await copies.read(id, "x.jsonl", 0, 9)).length]).toEqual([undefined, 0]);
    expect(await database.query("SELECT count(*) FROM claude_agents_mcp.transcript_parts")).toBe("0");
  });

  it("delivers events and commands across nodes by hints, well before the look of each second", async () => {
    const [a, b] = [await connect({ name: "a" }), await connect({ name: "b" })];
    const id = await create(a);
    const lease = await claimLease(a, id);
    const tail = b.log.tail(id, 1, never)[Symbol.asyncIterator]();
    const inbox = a.inbox.receive(lease, never)[Symbol.asyncIterator]();
    const times: number[] = [];
    for (let n = 0; n < 20; n += 1) {
      const next = tail.next();
      const begin = performance.now();
      await write(a, lease, [{ type: "notice", data: { kind: "warning", message: String(n) } }]);
      await next;
      const item = inbox.next();
      const sent = b.inbox.send(id, command(), LONG);
      const { value } = (await item) as IteratorYieldResult<InboxItem>;
      await value.ack(done(n));
      await sent;
      times.push(performance.now() - begin);
    }
    // Four hints of at most 25 ms each, and a busy machine.
    expect(times.toSorted((x, y) => x - y)[10]).toBeLessThan(500);
    await tail.return?.();
    await inbox.return?.();
  });
});
