import { copyFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Lease, SessionBackend } from "../../src/engine/ports.ts";
import { isLoss } from "../../src/engine/ports.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { StoreFile } from "../kit/store/files.ts";
import { TAMPERINGS } from "../kit/store/tampering.ts";
import { claimLease, notice, notices, range, session, TTL, write } from "../kit/store/vocabulary.ts";

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
    lease = await claimLease(node, id);
    await write(node, lease, notices(1, NOTED));
  });
  afterEach(async () => store.close());

  const errorOf = async (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => undefined,
      (error: unknown) => error,
    );

  it.each(TAMPERINGS)("%s: the next heartbeat reports the change", async (_, tamper, reported) => {
    await tamper(store.file);
    const error = await errorOf(node.leases.heartbeat(TTL));
    expect(error).toMatchObject({ code: "INTERNAL", message: expect.stringContaining(reported) });
    expect(isLoss(error)).toBe(true);
  });

  it.each(TAMPERINGS.filter(([what]) => /log|newer/.test(what)))(
    "%s: after the report, the store refuses every read and write",
    async (_, tamper, reported) => {
      await tamper(store.file);
      await errorOf(node.leases.heartbeat(TTL));
      const calls = [node.rows.get(id), node.log.read(id, 1, 9), write(node, lease, []), node.leases.heartbeat(TTL)];
      for (const call of calls) {
        const error = await errorOf(call);
        expect(error).toMatchObject({ message: expect.stringContaining(reported) });
        expect(isLoss(error)).toBe(true);
      }
    },
  );

  it.each(TAMPERINGS.filter(([what]) => /file/.test(what)))(
    "%s: after the report, the store opens the file now at its path, or creates one",
    async (what, tamper) => {
      await tamper(store.file);
      await errorOf(node.leases.heartbeat(TTL));
      expect(await node.log.read(id, 1, 100)).toHaveLength(what.includes("deleted") ? 0 : NOTED);
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

  it("a file whose log index is deleted stays unchanged, and the next process finds every event in the log", async () => {
    const [, tamper] = TAMPERINGS.find(([what]) => what.includes("index"))!;
    const before = await readFile(store.file);
    await tamper(store.file);
    await errorOf(node.leases.heartbeat(TTL));
    await node.close();
    expect((await readFile(store.file)).equals(before)).toBe(true);
    expect(await store.connect("next").log.read(id, 1, 100)).toHaveLength(NOTED);
  });

  it("SQLite's own changes of its write-ahead log count as no loss: two writers, checkpoints, a restarted log", async () => {
    const other = store.connect("other");
    await other.leases.heartbeat(TTL);
    const database = await openDatabase(store.file);
    database.exec("PRAGMA busy_timeout = 5000");
    const otherLease = await claimLease(other, (await other.rows.create(session())).record.id);
    const modes = ["PASSIVE", "FULL", "RESTART", "TRUNCATE"];
    for (const n of range(1, 40)) {
      const text = "x".repeat(n * 1000);
      await Promise.all([write(node, lease, [notice(text)]), write(other, otherLease, [notice(text)])]);
      if (n % 3 === 0) database.exec(`PRAGMA wal_checkpoint(${modes[(n / 3) % modes.length]!})`);
      await Promise.all([node.leases.heartbeat(TTL), other.leases.heartbeat(TTL)]);
    }
    database.exec("VACUUM");
    database.close();
    await node.leases.heartbeat(TTL);
    expect(await node.log.read(id, 1, 1000)).toHaveLength(NOTED + 40);
  });
});
