import { execFileSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { mkdir, open as openFile, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { networkKind } from "../../src/config/network-path.ts";
import { mountsIn } from "../../src/security/files/mounts.ts";
import type { SessionBackend } from "../../src/engine/ports.ts";
import { StoreError } from "../../src/store/errors.ts";
import { StoreConnection } from "../../src/store/sqlite/connect/store-connection.ts";
import { SqliteBackend } from "../../src/store/sqlite/backend.ts";
import { type Database, openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { asStoreError } from "../../src/store/sqlite/connect/faults.ts";
import { openConnection } from "../../src/store/sqlite/connect/open-file.ts";
import { collectGarbage, StoreFile } from "../kit/store/files.ts";
import { claimLease, iterator, never, notice, range, session, TTL, write } from "../kit/store/vocabulary.ts";

const Journal = z.object({ journal_mode: z.string() });
const run = (command: string, ...args: string[]): void => void execFileSync(command, args, { stdio: "ignore" });

function mayMount(): boolean {
  if (process.platform !== "linux") return false;
  const folder = mkdtempSync(join(tmpdir(), "store-mount-"));
  try {
    run("mount", "-t", "tmpfs", "none", folder);
    run("umount", folder);
    return true;
  } catch {
    return false;
  } finally {
    rmdirSync(folder);
  }
}

describe("store: sqlite, with faults", () => {
  let store: StoreFile;
  let node: SessionBackend;

  beforeEach(async () => {
    store = await StoreFile.make();
    node = store.connect("node");
  });
  afterEach(async () => store.close());

  const faultOf = async (call: Promise<unknown>): Promise<string> =>
    call.then(
      () => "none",
      (error: unknown) => {
        if (!(error instanceof StoreError)) throw error;
        expect(error.code).toBe("INTERNAL");
        expect(error.message).toContain(store.file);
        return error.fault;
      },
    );
  const expectWorking = async (): Promise<void> => {
    await node.leases.heartbeat(TTL);
    expect(await node.rows.create(session())).toMatchObject({ created: true });
  };

  it("the store reports a damaged file, and works again once the file is moved away", async () => {
    await mkdir(join(store.folder, "made"));
    await writeFile(store.file, "no database ".repeat(1000));
    expect(await faultOf(node.leases.heartbeat(TTL))).toBe("corrupt");
    expect(await faultOf(node.rows.list({ principal: "local", limit: 1 }))).toBe("corrupt");
    await rename(store.file, `${store.file}.damaged`);
    await expectWorking();
  });

  it("a reader of a damaged log gets an error, never an incomplete log", async () => {
    await node.leases.heartbeat(TTL);
    const { id } = (await node.rows.create(session())).record;
    await write(
      node,
      await claimLease(node, id),
      range(1, 2000).map((n) => notice(`${String(n)} ${"x".repeat(100)}`)),
    );
    await node.close();
    await collectGarbage();
    const { size } = await stat(store.file);
    const file = await openFile(store.file, "r+");
    for (let page = 20; page * 4096 < size; page++) await file.write("damage".repeat(100), page * 4096);
    await file.close();
    node = store.connect("next");
    expect(await faultOf(node.log.read(id, 1, 2000))).toBe("corrupt");
    expect(await faultOf(iterator(node.log.tail(id, 1, never)).next())).toBe("corrupt");
  });

  it("the store refuses the database of another program, and leaves its file unchanged", async () => {
    await mkdir(join(store.folder, "made"));
    const other = await openDatabase(store.file);
    other.exec("CREATE TABLE theirs(x)");
    other.close();
    const before = await readFile(store.file);
    expect(await faultOf(node.leases.heartbeat(TTL))).toBe("foreign");
    expect(await readFile(store.file)).toEqual(before);
  });

  it("the store reports a file in place of its folder, and works once the file is removed", async () => {
    await writeFile(join(store.folder, "made"), "a file where the folder should be");
    expect(await faultOf(node.leases.heartbeat(TTL))).toBe("readonly");
    await rm(join(store.folder, "made"));
    await expectWorking();
  });

  it("the store reports that its file was deleted, then begins a new one", async () => {
    await expectWorking();
    await rm(join(store.folder, "made"), { recursive: true });
    expect(await faultOf(node.leases.heartbeat(TTL))).toBe("moved");
    expect(await node.rows.list({ principal: "local", limit: 9 })).toEqual([]);
    await expectWorking();
  });

  describe.runIf(mayMount())("on a small file system of its own (for users who may mount one)", () => {
    const made = (): string => join(store.folder, "made");
    const mount = (options: string): void => run("mount", "-t", "tmpfs", "-o", options, "none", made());

    beforeEach(async () => {
      await mkdir(made());
      mount("size=1m");
    });
    afterEach(async () => {
      await node.close();
      run("umount", "--lazy", made());
    });

    it("a full disk fails the write, loses no acknowledged one, and writes go on once there is space", async () => {
      await node.leases.heartbeat(TTL);
      const { id } = (await node.rows.create(session())).record;
      const lease = await claimLease(node, id);
      let acknowledged = 0;
      const fill = async (): Promise<never> => {
        for (;;) {
          await write(node, lease, [notice("x".repeat(50_000))]);
          acknowledged++;
        }
      };
      expect(await faultOf(fill())).toBe("full");
      expect(acknowledged).toBeGreaterThan(3);
      for (const _ of range(1, 3)) expect(await faultOf(fill())).toBe("full");
      expect(await node.log.read(id, 1, 1000)).toHaveLength(acknowledged);
      expect((await node.rows.get(id))!.state.lastEventId).toBe(acknowledged);
      run("mount", "-o", "remount,size=8m", made());
      await write(node, lease, [notice("after")]);
      expect(await store.connect("other").log.read(id, 1, 1000)).toHaveLength(acknowledged + 1);
    });

    it("the store reports a read-only file system, and works once the file system is writable again", async () => {
      await expectWorking();
      await node.close();
      await collectGarbage();
      run("mount", "-o", "remount,ro", made());
      node = store.connect("next");
      expect(await faultOf(node.leases.heartbeat(TTL))).toBe("readonly");
      run("mount", "-o", "remount,rw", made());
      await expectWorking();
    });
  });

  it("a locked database is reported as busy, and an error of another cause is not taken for a fault of the store", () => {
    const busy = Object.assign(new Error("database is locked"), { code: "ERR_SQLITE_ERROR", errcode: 261 });
    expect(asStoreError(busy, "f")).toMatchObject({
      fault: "busy",
      message: expect.stringContaining("locked") as string,
    });
    expect(asStoreError(new TypeError("ours"), "f")).toBeUndefined();
  });

  it.each([
    ["/home/ann/store", true],
    ["/home/bob", false],
    ["/home/ann2", false],
    ["/mnt/my disk/x", true],
    ["/mnt/ssh", true],
    ["/", false],
  ])("the mount table decides if %s is on a network file system: %s", (folder, network) => {
    const mounts = [
      "22 27 0:21 / / rw,relatime - ext4 /dev/vda rw",
      "23 22 0:22 / /home rw shared:1 - xfs /dev/vdb rw",
      "24 23 0:23 / /home/ann rw,nosuid shared:2 master:3 - nfs4 server:/ann rw,vers=4.2",
      "25 22 0:24 / /mnt/my\\040disk rw - cifs //server/disk rw",
      "26 22 0:25 / /mnt/ssh rw - ext4 /dev/vdc rw",
      "27 26 0:26 / /mnt/ssh rw - fuse.sshfs ann@server: rw",
    ];
    expect(networkKind(folder, mountsIn(mounts.join("\n"))) !== undefined).toBe(network);
  });
});

describe("store: sqlite, an SQLite too old for a write-ahead log", () => {
  let store: StoreFile;

  beforeEach(async () => (store = await StoreFile.make()));
  afterEach(async () => store.close());

  /** Opens the real database, but with `version` in place of `sqlite_version()`. */
  const connectAs =
    (version: string) =>
    async (file: string): Promise<Database> => {
      const database = await openDatabase(file);
      const prepare = (sql: string) => database.prepare(sql.replace("sqlite_version()", `'${version}'`));
      const rest: Omit<Database, "prepare"> = {
        exec: (sql) => database.exec(sql),
        close: () => database.close(),
      };
      return { ...rest, prepare };
    };

  async function open(
    version: string,
  ): Promise<{ node: SessionBackend; warnings: string[]; journal: () => Promise<string> }> {
    const warnings: string[] = [];
    const silent = (): void => undefined;
    const warn = (message: string, fields?: object): void => void warnings.push(`${message} ${JSON.stringify(fields)}`);
    const log = { debug: silent, info: silent, warn, error: silent };
    const access = new StoreConnection({ kind: "sqlite", file: store.file }, async () =>
      openConnection(store.file, log, connectAs(version)),
    );
    const isRunning = async (): Promise<boolean> => Promise.resolve(true);
    const self = {
      nodeId: version,
      process: { pid: 1, startedAt: "" },
      isRunning,
      clock: { now: () => 1, tick: () => 1 },
    };
    const node = new SqliteBackend(self, access);
    await node.leases.heartbeat(TTL);
    const { id } = (await node.rows.create(session())).record;
    await write(node, await claimLease(node, id), [notice("1")]);
    expect(await node.log.read(id, 1, 9)).toHaveLength(1);
    const journal = async () => access.use((db) => db.get("PRAGMA journal_mode", Journal)?.journal_mode ?? "");
    return { node, warnings, journal };
  }

  it.each(["3.37.2", "3.44.5", "3.45.1", "3.50.6", "3.51.2"])(
    "SQLite %s is used without a write-ahead log, and one warning says so",
    async (version) => {
      const { node, journal, warnings } = await open(version);
      expect(await journal()).toBe("truncate");
      expect(warnings).toEqual([expect.stringContaining(`SQLite ${version} can lose data`)]);
      await node.close();
    },
  );

  it.each(["3.44.6", "3.50.7", "3.51.3", "3.52.0", "3.53.4", "4.0.0"])(
    "SQLite %s is used with a write-ahead log",
    async (version) => {
      const { node, journal, warnings } = await open(version);
      expect([await journal(), warnings]).toEqual(["wal", []]);
      await node.close();
    },
  );

  it("an old SQLite keeps the write-ahead log that a newer one has open, and uses none after its end", async () => {
    const newer = await open("3.53.0");
    const older = await open("3.45.1");
    expect(await older.journal()).toBe("wal");
    await newer.node.close();
    await older.node.close();
    await collectGarbage();
    const again = await open("3.45.1");
    expect(await again.journal()).toBe("truncate");
    await again.node.close();
  });
});
