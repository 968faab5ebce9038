import type { StoreConnection } from "./connect/store-connection.ts";
import type { Connection } from "./connect/connection.ts";
import { isStoreFailure } from "./connect/driver.ts";
import { checkReadable } from "./connect/migrations.ts";

/**
 * Urgency of a write:
 * - `barrier`: on the disk before the write is acknowledged, with all earlier writes.
 * - `immediate`: written at once; survives the end of the process but not of the machine.
 * - `grouped`: like `immediate`, but may wait a little, to share a transaction with later writes.
 */
export type Urgency = "barrier" | "immediate" | "grouped";

/**
 * Grouped writes wait for `GROUP_COSTS` times the duration of the last commit, so that commits take at most a fifth of the
 * time; but at most `GROUP_MS`, and not if `GROUP_EVENTS` events wait. The first write after a pause does not wait.
 */
const [GROUP_COSTS, GROUP_MS, GROUP_EVENTS] = [4, 50, 64];
/** Maximum number of jobs in one transaction, because a transaction holds up everything else. */
const TRANSACTION_JOBS = 64;

interface Job {
  readonly urgency: Urgency;
  /** Does the work. The returned function resolves the caller's promise, once the work is stored. */
  readonly run: (db: Connection) => () => void;
  readonly fail: (error: unknown) => void;
}

/** Runs all writes of this process in order, several to a transaction. */
export class Writer {
  readonly #access: StoreConnection;
  readonly #onCommit: () => void;
  readonly #queue: Job[] = [];
  #waitingEvents = 0;
  /** Time from which a grouped write need not wait. */
  #quietUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #draining: Promise<void> | undefined;

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
      this.#queue.push({ urgency, run, fail: reject });
      this.#waitingEvents += events;
      this.#schedule(urgency);
    });
  }

  /** Resolves when the queue is empty. */
  async flush(): Promise<void> {
    this.#drainSoon();
    await this.#draining;
  }

  #schedule(urgency: Urgency): void {
    const wait = this.#quietUntil - performance.now();
    if (urgency !== "grouped" || this.#waitingEvents >= GROUP_EVENTS || wait <= 0) this.#drainSoon();
    else this.#timer ??= setTimeout(() => this.#drainSoon(), wait);
  }

  #drainSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // An empty queue must not start `#drain`, which would end before `??=` has assigned: `#draining` would stay set, and
    // nothing would drain again.
    if (this.#queue.length > 0) this.#draining ??= this.#drain();
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      // Batches all jobs of this event-loop turn into one transaction, and lets other work run in between.
      await new Promise(setImmediate);
      const jobs = this.#queue.splice(0, TRANSACTION_JOBS);
      if (this.#queue.length === 0) this.#waitingEvents = 0;
      await this.#commit(jobs);
    }
    this.#draining = undefined;
  }

  /** Commits jobs in one transaction. A failure of the store fails all jobs, a failure of a job only that job. */
  async #commit(jobs: readonly Job[]): Promise<void> {
    try {
      const settled = await this.#access.use((db) => this.#transact(db, jobs));
      this.#onCommit();
      for (const settle of settled) settle();
    } catch (error) {
      for (const { fail } of jobs) fail(error);
    }
  }

  #transact(db: Connection, jobs: readonly Job[]): (() => void)[] {
    const begin = performance.now();
    const durability = jobs.some(({ urgency }) => urgency === "barrier") ? "full" : "normal";
    const settled = db.transaction(durability, () => {
      checkReadable(db, this.#access.name);
      return jobs.map((job) => runOne(db, job));
    });
    const end = performance.now();
    this.#quietUntil = end + Math.min(GROUP_COSTS * (end - begin), GROUP_MS);
    return settled;
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
