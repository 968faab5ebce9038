import type { z } from "zod";
import { isBusy, type Database, type SqlValues, type Statement } from "./driver.ts";

/** How a transaction outlives the machine: `full` is on the disk when it returns, `normal` survives the process only. */
export type Durability = "full" | "normal";

/** One open database, with the statements that were used on it. No method waits: none lets another one in between. */
export class Connection {
  readonly #database: Database;
  readonly #statements = new Map<string, Statement>();
  /** In a write-ahead log a commit need not reach the disk to be whole; in a rollback journal it must. */
  readonly #writeAhead: boolean;
  #durability: Durability = "normal";

  constructor(database: Database, writeAhead: boolean) {
    this.#database = database;
    this.#writeAhead = writeAhead;
  }

  /** The first row, or undefined. */
  get<T>(sql: string, row: z.ZodType<T>, values: SqlValues = {}): T | undefined {
    const found = this.#prepare(sql).get(values);
    return found === undefined ? undefined : row.parse(found);
  }

  all<T>(sql: string, row: z.ZodType<T>, values: SqlValues = {}): T[] {
    return this.#prepare(sql)
      .all(values)
      .map((found) => row.parse(found));
  }

  /** How many rows it changed. */
  run(sql: string, values: SqlValues = {}): number {
    return Number(this.#prepare(sql).run(values).changes);
  }

  /** For statements that are run seldom and in any number. */
  execute(sql: string): void {
    this.#database.exec(sql);
  }

  /** All of `work`, or nothing of it where it throws. Throws a busy error when another connection is writing. */
  transaction<T>(durability: Durability, work: () => T): T {
    this.#become(durability);
    // Takes the right to write at once: a transaction that began by reading could not wait for it.
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

  /** Several reads of one moment. */
  snapshot<T>(work: () => T): T {
    this.execute("BEGIN");
    try {
      return work();
    } finally {
      this.#rollback();
    }
  }

  /** Within a transaction: what `work` has done when it throws is undone, the rest of the transaction stays. */
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

  /** Moves what stands in the write-ahead log into the file, as far as others let it. */
  save(): void {
    this.#tolerate("PRAGMA wal_checkpoint(PASSIVE)");
  }

  /** @photostructure/sqlite keeps the file open, without a lock, until the last statement is garbage. */
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

  /** On a full disk and its like SQLite has already rolled back by itself, and says that there is nothing to undo. */
  #tolerate(sql: string): void {
    try {
      this.execute(sql);
    } catch {
      // Nothing to undo.
    }
  }
}
