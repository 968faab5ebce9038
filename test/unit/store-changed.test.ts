import { copyFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Lease, SessionBackend } from "../../src/engine/ports.ts";
import { isLoss } from "../../src/engine/ports.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { StoreFile } from "../support/store/files.ts";
import { TAMPERINGS } from "../support/store/tampering.ts";
import { claimed, notice, notices, numbers, session, TTL, write } from "../support/store/vocabulary.ts";

const NOTED = 20;

describe("store: sqlite, changed while it is in use", () => {
  let store: StoreFile;
  let node: SessionBackend;
  let id: string;
  let lease: Lease;

  beforeEach(async () => {
    store = await StoreFile.make();
    node = store.connect("node");
    await node.leases.heartbeat(TTL);
    id = (await node.rows.create(session())).record.id;
    lease = await claimed(node, id);
    await write(node, lease, notices(1, NOTED));
  });
  afterEach(async () => store.close());

  const errorOf = async (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => undefined,
      (error: unknown) => error,
    );

  it.each(TAMPERINGS)("%s: the next heartbeat reports the change", async (_, tamper, told) => {
    await tamper(store.file);
    const error = await errorOf(node.leases.heartbeat(TTL));
    expect(error).toMatchObject({ code: "INTERNAL", message: expect.stringContaining(told) });
    expect(isLoss(error)).toBe(true);
  });

  it.each(TAMPERINGS.filter(([what]) => !/emptied|cut off|overwritten/.test(what)))(
    "%s: no further write is acknowledged, even before a heartbeat",
    async (_, tamper, told) => {
      await tamper(store.file);
      const error = await errorOf(write(node, lease, [notice("after")]));
      expect(error).toMatchObject({ message: expect.stringContaining(told) });
    },
  );

  it("a deleted write-ahead log is recovered: the file contains every acknowledged write", async () => {
    await TAMPERINGS[0]![1](store.file);
    await errorOf(node.leases.heartbeat(TTL));
    const copy = join(store.folder, "copy.db");
    await copyFile(store.file, copy);
    const reader = store.connect("reader", {}, copy);
    expect(await reader.log.read(id, 1, 100)).toHaveLength(NOTED);
  });

  it("a damaged file is left unchanged, and nothing more is read from it", async () => {
    const before = join(store.folder, "before.db");
    await TAMPERINGS[2]![1](store.file);
    await copyFile(store.file, before);
    await errorOf(node.leases.heartbeat(TTL));
    for (const call of [
      node.rows.get(id),
      node.leases.heartbeat(TTL),
      node.log.read(id, 1, 9),
      write(node, lease, []),
    ]) {
      expect(isLoss(await errorOf(call))).toBe(true);
    }
    await node.close();
    const bytes = await Promise.all([before, store.file].map(async (file) => readFile(file)));
    expect(bytes[0]!.equals(bytes[1]!)).toBe(true);
  });

  it("SQLite's own changes of its write-ahead log are no loss: writes of two, checkpoints, a restarted log", async () => {
    const other = store.connect("other");
    await other.leases.heartbeat(TTL);
    const database = await openDatabase(store.file);
    database.exec("PRAGMA busy_timeout = 5000");
    const its = await claimed(other, (await other.rows.create(session())).record.id);
    const modes = ["PASSIVE", "FULL", "RESTART", "TRUNCATE"];
    for (const n of numbers(1, 40)) {
      const text = "x".repeat(n * 1000);
      await Promise.all([write(node, lease, [notice(text)]), write(other, its, [notice(text)])]);
      if (n % 3 === 0) database.exec(`PRAGMA wal_checkpoint(${modes[(n / 3) % modes.length]!})`);
      await Promise.all([node.leases.heartbeat(TTL), other.leases.heartbeat(TTL)]);
    }
    database.exec("VACUUM");
    database.close();
    await node.leases.heartbeat(TTL);
    expect(await node.log.read(id, 1, 1000)).toHaveLength(NOTED + 40);
  });
});
