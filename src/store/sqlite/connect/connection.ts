import type { z } from "zod";
import { isBusy, type Database, type SqlValues, type Statement } from "./driver.ts";

/**
 * Durability of a transaction: `full` is on the disk on return and survives the machine, `normal` survives the process only.
 */
export type Durability = "full" | "normal";

/** Open database with its prepared statements. All methods are synchronous, so that no call comes in between. */
export class Connection {
  readonly #database: Database;
  readonly #statements = new Map<string, Statement>();
  /**
   * True for a write-ahead log: a commit is atomic without reaching the disk. In a rollback journal a commit must reach the
   * disk.
   */
  readonly #writeAhead: boolean;
  #durability: Durability = "normal";

  constructor(database: Database, writeAhead: boolean) {
    this.#database = database;
    this.#writeAhead = writeAhead;
  }

  /** Returns the first row, or `undefined`. */
  get<T>(sql: string, row: z.ZodType<T>, values: SqlValues = {}): T | undefined {
    const found = this.#prepare(sql).get(values);
    return found === undefined ? undefined : row.parse(found);
  }

  all<T>(sql: string, row: z.ZodType<T>, values: SqlValues = {}): T[] {
    return this.#prepare(sql)
      .all(values)
      .map((found) => row.parse(found));
  }

  /** Returns the number of changed rows. */
  run(sql: string, values: SqlValues = {}): number {
    return Number(this.#prepare(sql).run(values).changes);
  }

  /** Runs rare statements, any number at once. */
  execute(sql: string): void {
    this.#database.exec(sql);
  }

  /**
   * Runs `work` in a transaction: all of `work` is stored, or nothing if it throws. Throws a busy error if another connection
   * is writing.
   */
  transaction<T>(durability: Durability, work: () => T): T {
    this.#become(durability);
    // Takes the write lock at once: a transaction that began by reading could not wait for the lock.
    this.execute("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.execute("COMMIT");
      return result;
    } catch (error) {
      this.#rollback();
      throw error;
    }
  }

  /** Runs several reads on one state of the database. */
  snapshot<T>(work: () => T): T {
    this.execute("BEGIN");
    try {
      return work();
    } finally {
      this.#rollback();
    }
  }

  /** Runs `work` within a transaction. An error undoes `work`, but not the rest of the transaction. */
  attempt<T>(work: () => T): T {
    this.execute("SAVEPOINT attempt");
    try {
      const result = work();
      this.execute("RELEASE attempt");
      return result;
    } catch (error) {
      if (!isBusy(error)) this.#tolerate("ROLLBACK TO attempt; RELEASE attempt");
      throw error;
    }
  }

  /** Moves the content of the write-ahead log into the file, as far as other connections permit. */
  save(): void {
    this.#tolerate("PRAGMA wal_checkpoint(PASSIVE)");
  }

  /** Drops the statements: @photostructure/sqlite keeps the file open, without a lock, until the last statement is garbage. */
  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  #prepare(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #become(durability: Durability): void {
    if (!this.#writeAhead || durability === this.#durability) return;
    this.execute(`PRAGMA synchronous = ${durability}`);
    this.#durability = durability;
  }

  #rollback(): void {
    this.#tolerate("ROLLBACK");
  }

  /** Ignores errors. On a full disk and the like, SQLite has already rolled back by itself and finds nothing to undo. */
  #tolerate(sql: string): void {
    try {
      this.execute(sql);
    } catch {
      // Nothing to undo.
    }
  }
}
