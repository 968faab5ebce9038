import { statSync } from "node:fs";
import { z } from "zod";
import { budgetOfKey, dayIn, LEDGER_PREFIXES, localDay, windowsIn } from "../domain/ledger.ts";
import { StoreError } from "../store/errors.ts";
import { Connection } from "../store/sqlite/connect/connection.ts";
import { openDatabase } from "../store/sqlite/connect/driver.ts";
import { asStoreError } from "../store/sqlite/connect/faults.ts";
import { checkSchema } from "../store/sqlite/connect/migrations.ts";
import { listEntries } from "../store/sqlite/ledger.ts";
import { getSession } from "../store/sqlite/sessions.ts";
import type { StoreReport } from "./store-report.ts";

type Opened = Extract<StoreReport, { kind: "opened" }>;

/**
 * Reads the store of `argv[2]` and prints a `StoreReport`. Never changes or creates a store. Opens the file for writing anyway,
 * because SQLite reads a file beside a rollback journal of a killed server only if it may roll back.
 */

const Row = z.object({ value: z.union([z.string(), z.number()]) });
const LARGE_BYTES = 64_000_000;

function queryValue(db: Connection, sql: string): string | number {
  return db.get(sql, Row)?.value ?? "";
}

/** False for a large store without a write-ahead log, because a long read would keep servers from writing. */
function isCheckable(db: Connection, file: string): boolean {
  return (
    queryValue(db, "SELECT journal_mode AS value FROM pragma_journal_mode") === "wal" ||
    statSync(file).size < LARGE_BYTES
  );
}

/** Maximum number of sessions in a finding, and time limit of the search for damaged events, ms. */
const [MAX_FINDINGS, EVENTS_MS] = [20, 20_000];

const Id = z.object({ id: z.string() });

/**
 * Finds sessions whose row cannot be read (`unreadable`) and sessions with damaged events (`lossy`). Reads rows as a server
 * does.
 */
function findUnreadable(db: Connection): Pick<Opened, "lossy" | "unreadable"> {
  const ids = db.all("SELECT id FROM sessions ORDER BY updated_at DESC", Id).map(({ id }) => id);
  const unreadable = ids.flatMap((id) => {
    const { unreadable: found } = getSession(db, id) ?? {};
    return found ? [{ id, ...found }] : [];
  });
  const deadline = performance.now() + EVENTS_MS;
  const lossy = ids.filter((id) => performance.now() < deadline && hasDamagedEvents(db, id));
  return { unreadable: unreadable.slice(0, MAX_FINDINGS), lossy: lossy.slice(0, MAX_FINDINGS) };
}

function hasDamagedEvents(db: Connection, sessionId: string): boolean {
  const sql = "SELECT id FROM events WHERE session_id = $sessionId AND json_valid(event) IS NOT 1 LIMIT 1";
  return db.get(sql, z.unknown(), { sessionId }) !== undefined;
}

/** Reads what the ledger says of accounts, and of budgets today. */
function readLedger(db: Connection): Pick<Opened, "accounts" | "budgets"> {
  const plans = listEntries(db, LEDGER_PREFIXES.account).toSorted((one, other) => other.at - one.at);
  const accounts = plans.flatMap(({ key, value }) => {
    const windows = windowsIn(value);
    return windows ? [{ ...windows, id: key.slice(LEDGER_PREFIXES.account.length) }] : [];
  });
  const days = listEntries(db, `${LEDGER_PREFIXES.budget}${localDay(Date.now())}:`);
  const budgets = days.flatMap(({ key, value }) => {
    const { name, scope } = budgetOfKey(key) ?? {};
    return name === undefined || scope === undefined ? [] : [{ name, scope, spentUsd: dayIn(value).spentUsd }];
  });
  return { accounts: accounts.slice(0, MAX_FINDINGS), budgets };
}

async function readStore(file: string): Promise<StoreReport> {
  const database = await openDatabase(file);
  try {
    database.exec("PRAGMA busy_timeout = 2000; PRAGMA query_only = 1");
    const db = new Connection(database, false);
    checkSchema(db, file);
    const isChecked = isCheckable(db, file);
    const result = isChecked ? queryValue(db, "SELECT quick_check AS value FROM pragma_quick_check LIMIT 1") : "ok";
    const hasTables = queryValue(db, "SELECT count(*) AS value FROM sqlite_master WHERE name = 'sessions'") === 1;
    return {
      kind: "opened",
      schema: Number(queryValue(db, "SELECT user_version AS value FROM pragma_user_version")),
      sqlite: String(queryValue(db, "SELECT sqlite_version() AS value")),
      sessions: hasTables ? Number(queryValue(db, "SELECT count(*) AS value FROM sessions")) : 0,
      ...(result !== "ok" && { damage: String(result) }),
      isChecked,
      ...(hasTables
        ? { ...findUnreadable(db), ...readLedger(db) }
        : { unreadable: [], lossy: [], accounts: [], budgets: [] }),
    };
  } finally {
    database.close();
  }
}

async function readReport(file: string): Promise<StoreReport> {
  try {
    return await readStore(file);
  } catch (error) {
    const found = asStoreError(error, file) ?? new StoreError("failed", file, error);
    return { kind: "fault", fault: found.fault, message: found.message };
  }
}

process.stdout.write(JSON.stringify(await readReport(process.argv[2] ?? "")));
