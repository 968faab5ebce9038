import { GroupWriter, type WriteJob } from "../group-writer.ts";
import type { Urgency } from "../texts.ts";
import type { StoreConnection } from "./connect/store-connection.ts";
import type { Connection } from "./connect/connection.ts";
import { isStoreFailure } from "./connect/driver.ts";
import { checkReadable } from "./connect/migrations.ts";

interface Job extends WriteJob {
  /** Does the work. The returned function resolves the caller's promise, once the work is stored. */
  readonly run: (db: Connection) => () => void;
}

/** Runs all writes of this process in order, several to a transaction. */
export class Writer {
  readonly #access: StoreConnection;
  readonly #onCommit: () => void;
  readonly #group = new GroupWriter<Job>(async (jobs) => this.#commit(jobs));

  /** `onCommit` is called after each commit, before its waiters resume. */
  constructor(access: StoreConnection, onCommit: () => void) {
    this.#access = access;
    this.#onCommit = onCommit;
  }

  /**
   * Resolves when the work is stored, and rejects if nothing of the work is stored. `work` may run more than once, and must do
   * nothing but read and write the database.
   */
  async write<T>(urgency: Urgency, work: (db: Connection) => T, events = 1): Promise<T> {
    this.#access.assertOpen();
    return new Promise((resolve, reject) => {
      const run = (db: Connection) => {
        const result = work(db);
        return () => resolve(result);
      };
      this.#group.add({ urgency, events, run, fail: reject });
    });
  }

  /** Resolves when the queue is empty. */
  async flush(): Promise<void> {
    await this.#group.flush();
  }

  /** Commits jobs in one transaction. A failure of the store fails all jobs, a failure of a job only that job. */
  async #commit(jobs: readonly Job[]): Promise<() => void> {
    const settled = await this.#access.use((db) => this.#transact(db, jobs));
    this.#onCommit();
    return () => {
      for (const settle of settled) settle();
    };
  }

  #transact(db: Connection, jobs: readonly Job[]): (() => void)[] {
    const durability = jobs.some(({ urgency }) => urgency === "barrier") ? "full" : "normal";
    return db.transaction(durability, () => {
      checkReadable(db, this.#access.name);
      return jobs.map((job) => runOne(db, job));
    });
  }
}

function runOne(db: Connection, job: Job): () => void {
  try {
    return db.attempt(() => job.run(db));
  } catch (error) {
    if (isStoreFailure(error)) throw error;
    return () => job.fail(error);
  }
}
