import { constants } from "node:fs";
import { chmod, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { findNetworkKind } from "../../../config/network-path.ts";
import type { Logger } from "../../../engine/ports.ts";
import { StoreError } from "../../errors.ts";
import { Connection } from "./connection.ts";
import { openDatabase, type Database } from "./driver.ts";
import { checkSchema, migrate } from "./migrations.ts";
import { retryWhileBusy } from "./faults.ts";

/** Opens a file, or creates a missing one, and migrates the file to this version. */
export async function openConnection(file: string, log: Logger, connect = openDatabase): Promise<Connection> {
  await createPrivateFile(file, log);
  const database = await connect(file);
  try {
    return await retryWhileBusy(() => prepare(database, file, log));
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Opens a database in memory, closed to other processes. Leaves nothing on the disk, and ends with its connection. */
export async function openInMemory(): Promise<Connection> {
  const database = await openDatabase(":memory:");
  database.exec("PRAGMA temp_store = MEMORY; PRAGMA auto_vacuum = INCREMENTAL");
  const connection = new Connection(database, false);
  migrate(connection);
  return connection;
}

/**
 * Creates a missing file, and lets only its owner read the file, because the logs hold texts of people and of their machines.
 * Throws StoreError for a folder on a network.
 */
async function createPrivateFile(file: string, log: Logger): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if ((await findNetworkKind(folder)) !== undefined) throw new StoreError("network", file);
  // SQLite gives its -wal and -shm files the permissions of the database.
  const handle = await open(file, constants.O_RDWR | constants.O_CREAT, 0o600);
  const { mode } = await handle.stat();
  await handle.close();
  if (process.platform === "win32" || (mode & 0o077) === 0) return;
  await chmod(file, 0o600).catch(() => log.warn("others can read the store", { file }));
}

/**
 * Sets the pragmas and migrates. `busy_timeout` comes first: otherwise, of two processes that start together, the second fails
 * at the next statement.
 */
function prepare(database: Database, file: string, log: Logger): Connection {
  database.exec("PRAGMA busy_timeout = 20");
  const before = new Connection(database, false);
  checkSchema(before, file);
  database.exec("PRAGMA auto_vacuum = INCREMENTAL");
  const connection = new Connection(database, chooseJournal(before, file, log));
  database.exec("PRAGMA journal_size_limit = 67108864");
  migrate(connection);
  return connection;
}

const Version = z.object({ version: z.string() });
const Journal = z.object({ journal_mode: z.string() });

const sql = {
  version: "SELECT sqlite_version() AS version",
  journal: "PRAGMA journal_mode",
  writeAhead: "PRAGMA journal_mode = WAL",
  rollback: "PRAGMA journal_mode = TRUNCATE",
} as const;

/** Chooses the journal. Returns true for a write-ahead log, which is faster and lets readers continue during a write. */
function chooseJournal(db: Connection, file: string, log: Logger): boolean {
  const version = db.get(sql.version, Version)?.version ?? "";
  const fixed = isWriteAheadLogSafe(version);
  if (fixed && db.get(sql.writeAhead, Journal)?.journal_mode === "wal") {
    db.execute("PRAGMA synchronous = NORMAL");
    return true;
  }
  db.execute("PRAGMA synchronous = FULL");
  const reason = fixed ? "its file system has no shared memory" : `SQLite ${version} can lose data: update Node`;
  log.warn("the store works without a write-ahead log, more slowly", { file, reason });
  if (fixed || db.get(sql.journal, Journal)?.journal_mode !== "wal") {
    db.get(sql.rollback, Journal);
    return false;
  }
  return !leaveWriteAheadLog(db);
}

/**
 * Switches to a rollback journal. Returns false if another process has the file open: then the write-ahead log stays, and this
 * process leaves moving its content into the file to the others (`wal_autocheckpoint = 0`).
 */
function leaveWriteAheadLog(db: Connection): boolean {
  try {
    if (db.get(sql.rollback, Journal)?.journal_mode === "truncate") return true;
  } catch {
    // The file is in use.
  }
  db.execute("PRAGMA wal_autocheckpoint = 0");
  return false;
}

/**
 * First patch of each minor version of SQLite 3 without the "WAL-reset bug", by which two connections that write at the same
 * moment can damage the file.
 */
const FIXED: readonly (readonly [minor: number, patch: number])[] = [
  [44, 6],
  [50, 7],
  [51, 3],
];

function isWriteAheadLogSafe(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const line = FIXED.find(([fixedMinor]) => fixedMinor === minor);
  return major > 3 || minor > 51 || (line !== undefined && patch >= line[1]);
}
