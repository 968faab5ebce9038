import { existsSync } from "node:fs";
import {
  copyFile,
  lstat,
  mkdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
  chmod,
} from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { settledFolder } from "../../src/store/former-folder.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { letGo, StoreFile } from "../support/store/files.ts";
import { session } from "../support/store/vocabulary.ts";

/** The state folder of an older version is moved once, and no sessions are lost or split by that. */

let world: StoreFile;
let former: string;
let present: string;
let said: { message: string; fields: Record<string, unknown> }[];
/** Whether the processes in the store's table count as alive. */
let lives: boolean;

beforeEach(async () => {
  world = await StoreFile.make();
  [former, present] = [join(world.folder, "old"), join(world.folder, "new")];
  [said, lives] = [[], false];
});
afterEach(async () => world.close());

async function settle(): Promise<string> {
  const isRunning = async () => Promise.resolve(lives);
  const warn = (message: string, fields = {}) => void said.push({ message, fields });
  return settledFolder({ former, present }, { isRunning, log: { warn } });
}

/** A store with one session, as an ended server leaves it. */
async function leave(folder: string): Promise<string> {
  const node = world.connect(folder, {}, join(folder, "store.db"));
  await node.leases.heartbeat(30_000);
  const { record } = await node.rows.create(session());
  await node.close();
  await letGo();
  return record.id;
}

async function sessionsIn(folder: string): Promise<string[]> {
  const node = world.connect(`reader of ${folder}`, {}, join(folder, "store.db"));
  const found = await node.rows.list({ principal: session().principal, limit: 9 });
  await node.close();
  await letGo();
  return found.map(({ id }) => id);
}

describe("the state folder with the former name", () => {
  it("is moved with all its content and permissions, with one log line; its old path still leads there", async () => {
    const id = await leave(former);
    await writeFile(join(former, "http-token"), "token\n", { mode: 0o600 });
    await chmod(former, 0o750);
    expect(await settle()).toBe(present);
    expect(said).toEqual([
      expect.objectContaining({
        message: "the state folder was moved to its new name, this once",
        fields: { from: former, to: present, link: former },
      }),
    ]);
    expect([await settle(), await settle()]).toEqual([present, present]);
    expect(said).toHaveLength(1);
    expect(await sessionsIn(present)).toEqual([id]);
    // Paths that users have noted, and servers of older versions.
    expect(await readFile(join(former, "http-token"), "utf8")).toBe("token\n");
    expect(await sessionsIn(former)).toEqual([id]);
    const modes = await Promise.all([present, join(present, "store.db"), join(present, "http-token")].map(modeOf));
    expect(modes).toEqual(process.platform === "win32" ? [0o666, 0o666, 0o666] : [0o750, 0o600, 0o600]);
  });

  it("is moved by one of several processes that begin together, and all of them use the same place", async () => {
    const id = await leave(former);
    expect(new Set(await Promise.all(Array.from({ length: 12 }, settle)))).toEqual(new Set([present]));
    expect(said).toHaveLength(1);
    expect(await sessionsIn(present)).toEqual([id]);
  });

  it("is also moved without a store, by one of several processes", async () => {
    await mkdir(former);
    await writeFile(join(former, "http-token"), "token\n");
    expect(new Set(await Promise.all(Array.from({ length: 12 }, settle)))).toEqual(new Set([present]));
    expect(said).toHaveLength(1);
    expect(await readFile(join(present, "http-token"), "utf8")).toBe("token\n");
  });

  it("is not created if it is missing, and is left if it is empty", async () => {
    expect(await settle()).toBe(present);
    await mkdir(former);
    expect(await settle()).toBe(present);
    expect([existsSync(present), said]).toEqual([false, []]);
  });

  it("is moved when another starting server has the store open only for a moment", async () => {
    const id = await leave(former);
    const other = await openDatabase(join(former, "store.db"));
    other.exec("SELECT count(*) FROM sessions");
    const settled = settle();
    await sleep(50);
    other.close();
    expect(await settled).toBe(present);
    expect(said).toEqual([
      expect.objectContaining({ message: "the state folder was moved to its new name, this once" }),
    ]);
    expect(await sessionsIn(present)).toEqual([id]);
  });

  it("stays while a server has the store open, and is moved after that has ended", async () => {
    const older = world.connect("older", {}, join(former, "store.db"));
    const { record } = await older.rows.create(session());
    expect(await settle()).toBe(former);
    expect(said).toEqual([
      {
        message: "the state folder keeps its former name, and is used there",
        fields: { folder: former, reason: "a server that runs has the store open" },
      },
    ]);
    await older.rows.update(record.id, record.rev, { title: "still mine" });
    await older.close();
    await letGo();
    expect(await settle()).toBe(present);
    expect(await sessionsIn(present)).toEqual([record.id]);
  });

  it("stays while a server in the store's table is alive, even without a lock on it", async () => {
    await leave(former);
    lives = true;
    expect(await settle()).toBe(former);
    expect(said[0]?.fields["reason"]).toBe(`the server with pid ${String(process.pid)} uses it`);
    lives = false;
    expect(await settle()).toBe(present);
  });

  it("is moved with the unmerged write-ahead log of a killed server", async () => {
    const dead = world.connect("dead");
    await dead.leases.heartbeat(30_000);
    const { record } = await dead.rows.create(session());
    await mkdir(former);
    for (const end of ["", "-wal"]) await copyFile(world.file + end, join(former, `store.db${end}`));
    expect(await settle()).toBe(present);
    expect(await sessionsIn(present)).toEqual([record.id]);
  });

  it("is awaited while another process is moving it", async () => {
    await leave(former);
    const mover = await openDatabase(join(former, "store.db"));
    mover.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
    const settled = settle();
    expect(await Promise.race([settled, new Promise((resolve) => setTimeout(resolve, 100, "waits"))])).toBe("waits");
    await rename(former, present);
    // The intermediate state that a concurrent process sees.
    expect(await settle()).toBe(present);
    await symlink("new", former);
    mover.close();
    expect(await settled).toBe(present);
    expect(said).toEqual([]);
  });

  it("is moved as a link if it is one, and the link's target stays", async () => {
    const elsewhere = join(world.folder, "disk");
    const id = await leave(elsewhere);
    await symlink("disk", former);
    expect(await settle()).toBe(present);
    expect([await readlink(present), await readlink(former)]).toEqual(["disk", "new"]);
    expect(await sessionsIn(elsewhere)).toEqual([id]);
    expect(await sessionsIn(present)).toEqual([id]);
  });

  it("is moved into the place of an empty folder", async () => {
    const id = await leave(former);
    await mkdir(present);
    expect(await settle()).toBe(present);
    expect(await sessionsIn(present)).toEqual([id]);
  });

  it("is used in place if it cannot be moved", async () => {
    const id = await leave(former);
    await mkdir(present);
    await writeFile(join(present, "notes"), "mine");
    expect(await settle()).toBe(former);
    expect(said[0]).toMatchObject({ fields: { folder: former, reason: expect.stringContaining("ENOTEMPTY") } });
    expect((await lstat(former)).isDirectory()).toBe(true);
    expect(await sessionsIn(former)).toEqual([id]);
  });

  it("is left unchanged if its store is damaged: opening it reports the fault", async () => {
    await mkdir(former);
    await writeFile(join(former, "store.db"), "no database ".repeat(1000));
    expect(await settle()).toBe(former);
    expect(said[0]?.fields["reason"]).toContain("file is not a database");
    expect(existsSync(present)).toBe(false);
  });

  it("is reported and left unchanged if there already is a store under the new name", async () => {
    const [old, id] = [await leave(former), await leave(present)];
    expect(await settle()).toBe(present);
    expect(said).toEqual([
      {
        message: "there is a store in the folder of the former name, too",
        fields: { folder: former, used: present, advice: expect.stringContaining("--store") as string },
      },
    ]);
    expect([await sessionsIn(former), await sessionsIn(present)]).toEqual([[old], [id]]);
    await rm(former, { recursive: true });
    expect(await settle()).toBe(present);
    expect(said).toHaveLength(1);
  });
});

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode & 0o777;
}
