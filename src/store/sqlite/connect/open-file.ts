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
  await makePrivate(file, log);
  const database = await connect(file);
  try {
    return await retryWhileBusy(() => prepare(database, file, log));
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Opens a database closed to other processes. Leaves nothing on the disk, and ends with its connection. */
export async function openInMemory(): Promise<Connection> {
  const database = await openDatabase(":memory:");
  database.exec("PRAGMA temp_store = MEMORY; PRAGMA auto_vacuum = INCREMENTAL");
  const connection = new Connection(database, false);
  migrate(connection);
  return connection;
}

/** Makes the file readable for its owner only, because the logs hold texts of people and of their machines. */
async function makePrivate(file: string, log: Logger): Promise<void> {
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
 * Prepares the connection. The order matters: without the timeout, the second of two processes that begin together fails at the
 * next statement.
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
  const fixed = sharesWriteAheadLog(version);
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
 * Switches to a rollback journal, unless another process has the file open. Then the other processes move the log's content
 * into the file, and this process never does.
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

/** First fixed versions. Earlier, two connections writing at the same moment could damage the file (the "WAL-reset bug"). */
const FIXED: readonly (readonly [minor: number, patch: number])[] = [
  [44, 6],
  [50, 7],
  [51, 3],
];

function sharesWriteAheadLog(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const line = FIXED.find(([fixedMinor]) => fixedMinor === minor);
  return major > 3 || minor > 51 || (line !== undefined && patch >= line[1]);
}
