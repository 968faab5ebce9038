import { createRequire } from "node:module";
import { z } from "zod";
import { cacheFolder } from "../../../config/cache-folder.ts";
import { PackageCache } from "../../../packages/package-cache.ts";
import { DRIVER_PACKAGE } from "../../../packages/pinned.ts";
import { StoreError } from "../../errors.ts";

/**
 * The one file that knows which SQLite is used: the one built into Node (22.13 and later), else @photostructure/sqlite,
 * which has the same interface: beside this program, or in the cache folder. Loaded with the first use of a store.
 */

export type SqlValue = string | number | null;
/** By the names of `$name` in the statement. */
export type SqlValues = Readonly<Record<string, SqlValue>>;

export interface Statement {
  run(values: SqlValues): { changes: number | bigint };
  get(values: SqlValues): unknown;
  all(values: SqlValues): unknown[];
}

/** No method waits: each blocks until SQLite is done, or has been busy for the time of its `busy_timeout`. */
export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

type Driver = { DatabaseSync: new (file: string) => Database };

export async function openDatabase(file: string): Promise<Database> {
  const driver: Driver = builtIn() ?? (await installed(file));
  return new driver.DatabaseSync(file);
}

const require: NodeJS.Require = createRequire(import.meta.url);
const load: (file: string) => Driver = require;

async function installed(file: string): Promise<Driver> {
  try {
    const cached = isBeside() ? undefined : packages().entryOf(DRIVER_PACKAGE);
    return cached === undefined ? await import("@photostructure/sqlite") : load(cached);
  } catch (error) {
    throw new StoreError("driver", file, error);
  }
}

function isBeside(): boolean {
  try {
    return require.resolve(DRIVER_PACKAGE.name) !== "";
  } catch {
    return false;
  }
}

function packages(): PackageCache {
  return new PackageCache({ cacheFolder: cacheFolder(process.env), environment: process.env });
}

/** Whether a store can be opened without an installation. */
export function hasDriver(): boolean {
  return builtIn() !== undefined || isBeside() || packages().entryOf(DRIVER_PACKAGE) !== undefined;
}

/** Throws InstallError. */
export async function installDriver(): Promise<void> {
  await packages().install(DRIVER_PACKAGE);
}

const BuiltIn = z.custom<Driver>((found) => typeof found === "object" && found !== null && "DatabaseSync" in found);

function builtIn(): Driver | undefined {
  // Node 22 warns of its own module on stderr, where clients show it to people who can do nothing about it.
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

/** SQLite's words for what can become of a query; from a query, @photostructure/sqlite gives them without the code. */
const CODES: Readonly<Record<string, number>> = {
  "database is locked": 5,
  "attempt to write a readonly database": 8,
  "disk I/O error": 10,
  "database disk image is malformed": 11,
  "database or disk is full": 13,
  "unable to open database file": 14,
  "file is not a database": 26,
};

/** SQLite's extended result code; undefined for an error that is not SQLite's. */
export function sqliteCode(error: unknown): number | undefined {
  const found = SqliteError.safeParse(error).data;
  return found && (found.errcode ?? CODES[found.message] ?? 1);
}

const BUSY = 5;
/** Too long, against a constraint, of the wrong type: the statement's own fault. */
const OF_STATEMENT: ReadonlySet<number> = new Set([18, 19, 20]);

/** SQLite could not do what it should have done, and nothing else would have fared better. */
export function isOfStore(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== undefined && !OF_STATEMENT.has(code & 0xff);
}

/** Another connection is in the way: what was tried has not happened and can be tried again. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code !== undefined && (code & 0xff) === BUSY;
}
