import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { Connection } from "../../src/store/sqlite/connect/connection.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { checkSchema, migrate, MIGRATIONS } from "../../src/store/sqlite/connect/migrations.ts";
import { StoreFile } from "../kit/store/files.ts";
import { claimLease, notice, session, TTL, write } from "../kit/store/vocabulary.ts";

/** `MIGRATIONS` with two more of a later version, which may only add to the schema. */
const LATER = [
  ...MIGRATIONS,
  "ALTER TABLE sessions ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'; ALTER TABLE events ADD COLUMN colour TEXT",
  "CREATE TABLE transcripts(n INTEGER PRIMARY KEY); CREATE INDEX sessions_mood ON sessions(mood)",
];

describe("store: sqlite schema", () => {
  let store: StoreFile;
  let db: Connection;

  beforeEach(async () => {
    store = await StoreFile.make();
    await mkdir(dirname(store.file));
    db = new Connection(await openDatabase(store.file), false);
  });
  afterEach(async () => {
    db.close();
    await store.close();
  });

  const version = (): unknown => db.get("PRAGMA user_version", z.object({ user_version: z.int() }))?.user_version;
  const useStore = async (): Promise<number> => {
    const node = store.connect("node");
    await node.leases.heartbeat(TTL);
    const { id } = (await node.rows.create(session())).record;
    await write(node, await claimLease(node, id), [notice("1")]);
    expect(await node.log.read(id, 1, 9)).toHaveLength(1);
    const { length } = await node.rows.list({ principal: "local", limit: 9 });
    await node.close();
    return length;
  };

  it("a migration keeps all content of a file of the present version", async () => {
    migrate(db);
    expect(version()).toBe(MIGRATIONS.length);
    expect(await useStore()).toBe(1);
    migrate(db, LATER);
    expect(version()).toBe(LATER.length);
    const mood = z.object({ mood: z.string() });
    expect(db.all("SELECT mood FROM sessions", mood)).toEqual([{ mood: "calm" }]);
  });

  it("a file to which a newer version has added columns, a table and an index stays usable", async () => {
    migrate(db, LATER);
    expect([await useStore(), await useStore()]).toEqual([1, 2]);
    expect(version()).toBe(LATER.length);
  });

  it("a file that a newer version has made unreadable is refused and left unchanged", async () => {
    const breaking = LATER.length + 1;
    migrate(db, [...LATER, `UPDATE meta SET value = '${String(breaking)}' WHERE key = 'readable_by'`]);
    const node = store.connect("node");
    await expect(node.leases.heartbeat(TTL)).rejects.toMatchObject({ fault: "newer", code: "INTERNAL" });
    expect(() => checkSchema(db, store.file, LATER)).toThrow("newer");
    expect(version()).toBe(breaking);
  });

  it("a migration is applied completely or not at all", () => {
    migrate(db, MIGRATIONS);
    expect(() => migrate(db, [...LATER, "CREATE TABLE half(x); CREATE TABLE nodes(y)"])).toThrow("nodes");
    expect(version()).toBe(MIGRATIONS.length);
    expect(() => db.get("SELECT count(*) FROM transcripts", z.unknown())).toThrow("transcripts");
  });
});
