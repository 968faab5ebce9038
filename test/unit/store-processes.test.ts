import { rm } from "node:fs/promises";
import { dirname } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { SessionBackend } from "../../src/engine/ports.ts";
import { Connection } from "../../src/store/sqlite/connect/connection.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { amount } from "../kit/runner/amount.ts";
import { StoreFile } from "../kit/store/files.ts";
import { Compiled, type Role, type StoreProcess } from "../kit/store/processes.ts";
import { command, done, LONG, never, range, session, take, TTL } from "../kit/store/vocabulary.ts";

describe("store: sqlite, several processes", { timeout: 60_000 }, () => {
  let compiled: Compiled;
  let store: StoreFile;
  let node: SessionBackend;
  const started: StoreProcess[] = [];

  beforeAll(async () => (compiled = await Compiled.make()));
  afterAll(async () => compiled.remove());
  beforeEach(async () => {
    store = await StoreFile.make();
    store.now = Date.now();
    node = store.connect("test");
    await node.leases.heartbeat(TTL);
  });
  afterEach(async () => {
    await Promise.all(started.splice(0).map(async (each) => each.kill()));
    await store.close();
  });

  const start = (role: Role, ...about: string[]): StoreProcess => {
    const child = compiled.start(role, store.file, about);
    started.push(child);
    return child;
  };
  const create = async (): Promise<string> => (await node.rows.create(session())).record.id;
  const integrity = async (): Promise<unknown> => {
    const database = await openDatabase(store.file);
    const row = z.object({ integrity_check: z.string() });
    const found = new Connection(database, true).get("PRAGMA integrity_check", row);
    database.close();
    return found?.integrity_check;
  };

  it("the store file is created once by processes that start together", async () => {
    await node.close();
    await rm(dirname(store.file), { recursive: true });
    const begun = range(1, 4).map(() => start("begin", JSON.stringify(session().state)));
    await Promise.all(begun.map(async (each) => each.ended));
    node = store.connect("reader");
    const found = await node.rows.list({ principal: "local", limit: 9 });
    const said = begun.flatMap((each) => each.said.map(String));
    expect(found.map(({ id }) => id).toSorted()).toEqual(said.toSorted());
    expect(found).toHaveLength(4);
  });

  it("three processes write to one file at once, and a fourth follows their logs", async () => {
    const ids = [await create(), await create(), await create()];
    const readers = ids.map((id) => take(400, node.log.tail(id, 1, never)));
    const writers = ids.map((id) => start("write", id));
    const logs = await Promise.all(readers);
    for (const log of logs) expect(log.map(({ id }) => id)).toEqual(range(1, 400));
    await Promise.all(writers.map(async (each) => each.kill()));
    // Each writer may have died between its last change and the line about it.
    const told = writers.reduce((sum, { said }) => sum + said.length - 1, 0);
    const [all] = await node.ledger.read(["all"]);
    expect(all).toMatchObject({ rev: all?.value["count"] });
    expect([0, 1, 2, 3]).toContain(all!.rev - told);
    expect(await integrity()).toBe("ok");
  });

  it("commands reach an owner in another process, in order", async () => {
    const id = await create();
    await start("echo", id).says(1);
    for (const n of range(0, 20)) expect(await node.inbox.send(id, command(), LONG)).toEqual(done(n));
  });

  it("a killed writer loses no acknowledged write, and its session can be claimed at once", async () => {
    const id = await create();
    for (const round of range(1, 8)) {
      const writer = start("write", id);
      await writer.says(20 + Math.floor(Math.random() * 100));
      await writer.kill();
      const [lease, ...acknowledged] = writer.said;
      expect(lease).toMatchObject({ epoch: round, tookOver: round > 1 });
      const log = await node.log.read(id, 1, 100_000);
      expect(log.map((event) => event.id)).toEqual(range(1, log.length));
      expect(log.length).toBeGreaterThanOrEqual(acknowledged.at(-1) as number);
      expect((await node.rows.get(id))!.state.lastEventId).toBe(log.length);
      // The ledger changes in the transaction of the events.
      expect(await node.ledger.read([id])).toMatchObject([{ value: { last: log.length } }]);
    }
    expect(await integrity()).toBe("ok");
  });

  it("a long log with a slow reader takes less than 40 MiB of memory", async () => {
    // At 1.5 KB an event: 60 MB, or 150 MB with `AMOUNTS=full`.
    const count = amount(40_000, 100_000);
    const reader = start("volume", await create(), String(count));
    await reader.ended;
    const [report] = reader.said as [{ count: number; grownMiB: number; slowAt: number }];
    expect(report).toMatchObject({ count, slowAt: 2 });
    expect(report.grownMiB).toBeLessThan(40);
  });
});
