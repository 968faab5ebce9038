import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/domain/event.ts";
import type { SessionBackend } from "../../src/engine/ports.ts";
import { stateFolder } from "../../src/config/state-folder.ts";
import { defaultStore } from "../../src/config/store.ts";
import { openStore } from "../../src/store/open.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { urgencyOf } from "../../src/store/texts.ts";
import { StoreFile } from "../kit/store/files.ts";
import { storeSuite } from "../kit/store/suite.ts";
import { claimLease, command, notice, range, prompt, session, SHORT, T0, TTL, write } from "../kit/store/vocabulary.ts";

/** Maximum delay of a grouped write, ms: `GROUP_MS` of the writer. */
const MAX_GROUP_MS = 50;

storeSuite("sqlite", async () => StoreFile.make());

describe("store: sqlite file", () => {
  let store: StoreFile;
  let node: SessionBackend;

  beforeEach(async () => {
    store = await StoreFile.make();
    node = store.connect("node");
  });
  afterEach(async () => store.close());

  const exists = async (path: string): Promise<boolean> =>
    stat(path).then(
      () => true,
      () => false,
    );
  const permissions = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);

  it("the store file is created at the first call, and is readable only by its owner", async () => {
    expect(await exists(dirname(store.file))).toBe(false);
    await node.leases.heartbeat(TTL);
    const parts = ["", "-wal", "-shm"].map((part) => store.file + part);
    expect(await Promise.all([dirname(store.file), ...parts].map(permissions))).toEqual(["700", "600", "600", "600"]);
    await node.close();
    const unused = store.connect("unused");
    await unused.close();
    await expect(unused.leases.heartbeat(1)).rejects.toThrow("closed");
  });

  it("rows, logs and idempotency keys persist from one process to the next", async () => {
    await node.leases.heartbeat(TTL);
    const { id } = (await node.rows.create(session({ idempotencyKey: "k" }))).record;
    await write(node, await claimLease(node, id), [notice("1")]);
    const before = [await node.rows.get(id), await node.log.read(id, 1, 9)];
    await node.close();
    const next = store.connect("next");
    expect([await next.rows.get(id), await next.log.read(id, 1, 9)]).toEqual(before);
    expect(await next.rows.create(session({ idempotencyKey: "k" }))).toMatchObject({ created: false, record: { id } });
  });

  it("a list finds rare rows among 2,500, in pages", async () => {
    const cwd = (n: number): string => (n % 400 === 7 ? "/Rare" : "/repo");
    const made = range(1, 2500).map((n) => session({ spec: { cwd: cwd(n) }, at: T0 + n }));
    await Promise.all(made.map(async (each) => node.rows.create(each)));
    const rare = made.filter(({ spec }) => spec.cwd === "/Rare").toReversed();
    for (const filter of [
      { text: "rar" },
      { cwd: "/Rare" },
      { text: "r", cwd: "/Rare", statuses: ["idle"] as const },
    ]) {
      const query = { principal: "local", limit: 3, ...filter };
      const first = await node.rows.list(query);
      const second = await node.rows.list({ ...query, before: first.at(-1)! });
      const third = await node.rows.list({ ...query, before: second.at(-1)! });
      expect([first, second, third].map((page) => page.length)).toEqual([3, 3, 1]);
      expect([...first, ...second, ...third].map(({ id }) => id)).toEqual(rare.map(({ id }) => id));
      expect(await node.rows.list({ ...query, limit: 9, since: T0 + 1700 })).toHaveLength(2);
    }
  });

  it("a session of an exited local process is taken over at once, and each process is checked once per call", async () => {
    const asked: unknown[] = [];
    let running = true;
    const other = store.connect("other", {
      isRunning: async (...process) => {
        asked.push(process);
        return Promise.resolve(running);
      },
    });
    await Promise.all([node, other].map(async (each) => each.leases.heartbeat(TTL)));
    const ids = (await Promise.all(range(1, 3).map(async () => node.rows.create(session())))).map(
      ({ record }) => record.id,
    );
    for (const id of ids) await node.leases.claim(id);
    const [id] = ids as [string];
    asked.length = 0;
    expect((await other.rows.list({ principal: "local", limit: 9 })).map(({ owner }) => owner?.alive)).toEqual([
      true,
      true,
      true,
    ]);
    expect(asked).toEqual([[process.pid, "now"]]);
    expect(await other.leases.claim(id)).toBeUndefined();
    running = false;
    expect((await other.rows.get(id))!.owner).toEqual({ nodeId: "node", alive: false });
    expect(await other.leases.claim(id)).toMatchObject({ tookOver: true, epoch: 2 });
    expect(await other.maintenance.purge({ before: T0 + 1, statuses: ["idle"], limit: 9 })).toBe(2);
  });

  it("the store keeps an unknown event, and refuses an unknown command in place of its owner", async () => {
    await node.leases.heartbeat(TTL);
    const { id } = (await node.rows.create(session())).record;
    const lease = await claimLease(node, id);
    const unknown = { type: "moon.landed", data: { at: [1, { deep: "x" }] } };
    await write(node, lease, [unknown as never, notice("after")]);
    const [event] = await node.log.read(id, 1, 1);
    expect(event).toEqual({ ...unknown, id: 1, at: T0 });
    const end = new AbortController();
    const items = node.inbox.receive(lease, end.signal)[Symbol.asyncIterator]();
    const first = items.next();
    const reply = await node.inbox.send(id, { ...command(), kind: "fly" } as never, 60_000);
    expect(reply).toMatchObject({ ok: false, refusal: { code: "INTERNAL" } });
    end.abort();
    expect((await first).done).toBe(true);
  });

  it("a command of a dead sender is dropped after its timeout", async () => {
    const owner = store.connect("owner");
    await owner.leases.heartbeat(10 * TTL);
    const { id } = (await owner.rows.create(session())).record;
    const lease = await claimLease(owner, id);
    const asked = command();
    const sent = node.inbox.send(id, asked, TTL);
    const closed = Promise.allSettled([sent]);
    // Written after the command: once `heartbeat` resolves, the command is stored.
    await node.leases.heartbeat(TTL);
    await node.close();
    await closed;
    const open = async (): Promise<unknown> => {
      const end = new AbortController();
      const next = owner.inbox.receive(lease, end.signal)[Symbol.asyncIterator]().next();
      await owner.rows.get(id);
      await owner.rows.get(id);
      end.abort();
      return (await next).done;
    };
    expect(await open()).toBe(false);
    store.advance(TTL + 1);
    expect(await open()).toBe(true);
    await expect(owner.inbox.send(id, asked, SHORT)).rejects.toThrow("was not answered");
  });

  it("a write waits for another writer without blocking the event loop", async () => {
    await node.leases.heartbeat(TTL);
    const blocker = await openDatabase(store.file);
    blocker.exec("BEGIN IMMEDIATE");
    const created = node.rows.create(session());
    // Runs 100 timers. If the wait blocked the event loop, `blocker` could never roll back.
    const runTimers = async () => {
      for (let timers = 0; timers < 100; timers += 1) await sleep(5);
    };
    expect(await Promise.race([created, runTimers()])).toBeUndefined();
    blocker.exec("ROLLBACK");
    blocker.close();
    expect(await created).toMatchObject({ created: true });
  });

  it("concurrent writes are grouped, and each is stored when it is acknowledged", async () => {
    await node.leases.heartbeat(TTL);
    const ids = (await Promise.all(range(1, 40).map(async () => node.rows.create(session())))).map(
      ({ record }) => record.id,
    );
    const leases = await Promise.all(ids.map(async (id) => claimLease(node, id)));
    const other = store.connect("other");
    await Promise.all(
      leases.map(async (lease, n) => {
        await write(node, lease, [notice(String(n))]);
        expect(await other.log.read(lease.sessionId, 1, 9)).toMatchObject([{ data: { message: String(n) } }]);
      }),
    );
  });

  it("writes go on after a delayed write was included in another", async () => {
    await node.leases.heartbeat(TTL);
    const { id } = (await node.rows.create(session())).record;
    const lease = await claimLease(node, id);
    for (const n of range(1, 5)) {
      // Commits, and so delays the next `write` until the commit of the second `create` includes its events.
      await node.rows.create(session());
      await Promise.all([node.rows.create(session()), write(node, lease, [notice(String(n))])]);
      await sleep(MAX_GROUP_MS + 10);
    }
    expect(await node.log.read(id, 1, 9)).toHaveLength(5);
  });
});

describe("the durability of a change", () => {
  const said: SessionEvent = { type: "message", data: { message: {} } };
  const looked: SessionEvent = { type: "turn.baseline", data: { turnId: "t", before: { folders: [] } } };
  it.each([
    ["only the state, for a caller", [], false, "immediate"],
    ["only the state, before an effect", [], true, "barrier"],
    ["output of Claude Code", [said, notice("1")], false, "grouped"],
    ["output of Claude Code, before an effect", [said], true, "barrier"],
    ["a look at the folders", [looked], false, "grouped"],
    ["a prompt", [said, prompt("hi")], false, "barrier"],
  ] as const)("the urgency of a write depends on its content: %s", (_, events, acted, urgency) => {
    expect(urgencyOf({ acted, events })).toBe(urgency);
  });
});

describe("the location of the store", () => {
  it.each([
    ["linux", { HOME: "/home/ann" }, "/home/ann/.local/state/claude-agents-mcp/store.db"],
    ["linux", { HOME: "/home/ann", XDG_STATE_HOME: "/var/ann" }, "/var/ann/claude-agents-mcp/store.db"],
    ["linux", { HOME: "/home/ann", XDG_STATE_HOME: "here" }, "/home/ann/.local/state/claude-agents-mcp/store.db"],
    ["darwin", { HOME: "/Users/ann" }, "/Users/ann/Library/Application Support/claude-agents-mcp/store.db"],
    ["win32", { LOCALAPPDATA: "C:\\Users\\ann\\L" }, "C:\\Users\\ann\\L\\claude-agents-mcp\\store.db"],
    ["win32", { USERPROFILE: "C:\\Users\\ann" }, "C:\\Users\\ann\\AppData\\Local\\claude-agents-mcp\\store.db"],
  ] as const)("the default store on %s with %o is in the state folder", (platform, env, path) => {
    expect(defaultStore(stateFolder(env, platform), platform).file).toBe(path);
  });

  it("a store of the kind memory opens without a file", async () => {
    const silent = (): void => undefined;
    const store = openStore(
      { kind: "memory" },
      {
        nodeId: "n",
        process: { pid: 1, startedAt: "" },
        isRunning: async () => Promise.resolve(true),
        clock: { now: () => 1, tick: () => 1 },
        log: { debug: silent, info: silent, warn: silent, error: silent },
      },
    );
    expect(await store.rows.create(session())).toMatchObject({ created: true });
  });
});
