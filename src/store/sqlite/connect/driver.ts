import { z } from "zod";
import { DRIVER_PACKAGE } from "../../../packages/pinned.ts";
import { StoreError } from "../../errors.ts";
import { hasPackage, loadPackage } from "../../installed-package.ts";

/**
 * Loads SQLite with the first use of a store: the module built into Node (22.13 and later), otherwise @photostructure/sqlite
 * with an equal interface, installed beside this program or in the cache folder. No other file knows which is in use.
 */

export type SqlValue = string | number | null;
/** Values of the parameters in a statement, by name without `$`. */
export type SqlValues = Readonly<Record<string, SqlValue>>;

export interface Statement {
  run(values: SqlValues): { changes: number | bigint };
  get(values: SqlValues): unknown;
  all(values: SqlValues): unknown[];
}

/** Open database. Every method blocks until SQLite is done, or has been busy for its `busy_timeout`. */
export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

type Driver = { DatabaseSync: new (file: string) => Database };

export async function openDatabase(file: string): Promise<Database> {
  const driver = loadBuiltIn() ?? loadDriver(file);
  return Promise.resolve(new driver.DatabaseSync(file));
}

function loadDriver(file: string): Driver {
  try {
    return BuiltIn.parse(loadPackage(DRIVER_PACKAGE));
  } catch (error) {
    throw new StoreError("driver", file, error);
  }
}

/** True if a store can be opened without an installation. */
export function hasDriver(): boolean {
  return loadBuiltIn() !== undefined || hasPackage(DRIVER_PACKAGE);
}

const BuiltIn = z.custom<Driver>((found) => typeof found === "object" && found !== null && "DatabaseSync" in found);

function loadBuiltIn(): Driver | undefined {
  // Hides Node 22's warning about `node:sqlite` on stderr. Clients would show the warning to people who can do nothing about
  // it.
  const warn = process.emitWarning.bind(process);
  process.emitWarning = () => undefined;
  try {
    return BuiltIn.safeParse(process.getBuiltinModule("node:sqlite")).data;
  } finally {
    process.emitWarning = warn;
  }
}

const SqliteError = z.object({
  code: z.literal("ERR_SQLITE_ERROR"),
  errcode: z.number().optional(),
  message: z.string(),
});

/** Result codes by SQLite's messages, because @photostructure/sqlite reports an error of a query without the code. */
const CODES: Readonly<Record<string, number>> = {
  "database is locked": 5,
  "attempt to write a readonly database": 8,
  "disk I/O error": 10,
  "database disk image is malformed": 11,
  "database or disk is full": 13,
  "unable to open database file": 14,
  "file is not a database": 26,
};

/** Returns SQLite's extended result code; `undefined` for an error that is not SQLite's. */
export function sqliteCode(error: unknown): number | undefined {
  const found = SqliteError.safeParse(error).data;
  return found && (found.errcode ?? CODES[found.message] ?? 1);
}

const BUSY = 5;
/** Codes of a faulty statement: value too long, against a constraint, of the wrong type. */
const STATEMENT_CODES: ReadonlySet<number> = new Set([18, 19, 20]);

/** True if SQLite itself failed, so that any other statement would fail, too. */
export function isStoreFailure(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== undefined && !STATEMENT_CODES.has(code & 0xff);
}

/** True if another connection is in the way: the statement has not happened and can be tried again. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== undefined && (code & 0xff) === BUSY;
}
