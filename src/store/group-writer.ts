import type { Urgency } from "./texts.ts";

/**
 * Grouped writes wait for `GROUP_COSTS` times the duration of the last commit, so that commits take at most a fifth of the
 * time; but at most `GROUP_MS`, and not if `GROUP_EVENTS` events wait. The first write after a pause does not wait.
 */
const [GROUP_COSTS, GROUP_MS, GROUP_EVENTS] = [4, 50, 64];
/** Maximum number of jobs in one transaction, because a transaction holds up everything else. */
const TRANSACTION_JOBS = 64;

export interface WriteJob {
  readonly urgency: Urgency;
  /** Number of events that the job writes. */
  readonly events: number;
  readonly fail: (error: unknown) => void;
}

/** Runs the writes of this process in order, several to a transaction. */
export class GroupWriter<Job extends WriteJob> {
  readonly #transact: (jobs: readonly Job[]) => Promise<() => void>;
  readonly #take: (queue: readonly Job[]) => readonly Job[];
  #queue: readonly Job[] = [];
  #waitingEvents = 0;
  /** Time from which a grouped write need not wait. */
  #quietUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #draining: Promise<void> | undefined;

  /**
   * `transact` stores the jobs in one transaction, and resolves with a function that tells their callers; if it rejects, all
   * jobs fail. `take` returns the jobs at the front of the queue that may share a transaction.
   */
  constructor(
    transact: (jobs: readonly Job[]) => Promise<() => void>,
    take = (queue: readonly Job[]): readonly Job[] => queue,
  ) {
    this.#transact = transact;
    this.#take = take;
  }

  add(job: Job): void {
    this.#queue = [...this.#queue, job];
    this.#waitingEvents += job.events;
    const wait = this.#quietUntil - performance.now();
    if (job.urgency !== "grouped" || this.#waitingEvents >= GROUP_EVENTS || wait <= 0) this.#drainSoon();
    else this.#timer ??= setTimeout(() => this.#drainSoon(), wait);
  }

  /** Resolves when the queue is empty. */
  async flush(): Promise<void> {
    this.#drainSoon();
    await this.#draining;
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
      const jobs = this.#take(this.#queue.slice(0, TRANSACTION_JOBS));
      this.#queue = this.#queue.slice(jobs.length);
      if (this.#queue.length === 0) this.#waitingEvents = 0;
      await this.#commit(jobs);
    }
    this.#draining = undefined;
  }

  async #commit(jobs: readonly Job[]): Promise<void> {
    const begin = performance.now();
    try {
      const settle = await this.#transact(jobs);
      this.#quietUntil = performance.now() + Math.min(GROUP_COSTS * (performance.now() - begin), GROUP_MS);
      settle();
    } catch (error) {
      for (const { fail } of jobs) fail(error);
    }
  }
}
