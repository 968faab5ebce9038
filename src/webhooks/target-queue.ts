/** Maximum number of attempts under way: in all, and to one target, so that a slow receiver does not hold up the others. */
const MAX_RUNNING = 16;
const MAX_PER_TARGET = 4;

interface Waiting<T> {
  readonly target: string;
  readonly item: T;
}

/** Runs `work` for each item: several at a time, few of one target, the oldest first. */
export class TargetQueue<T> {
  readonly #work: (item: T) => Promise<void>;
  readonly #running = new Map<string, number>();
  readonly #tasks = new Set<Promise<void>>();
  #waiting: readonly Waiting<T>[] = [];

  /** `work` must not reject. */
  constructor(work: (item: T) => Promise<void>) {
    this.#work = work;
  }

  /** Number of items that may be added now. */
  get free(): number {
    return MAX_RUNNING - this.#tasks.size;
  }

  /** Targets that have enough under way. Items of others begin at once, as far as there is a free slot. */
  get full(): string[] {
    return [...this.#running].flatMap(([target, count]) => (count >= MAX_PER_TARGET ? [target] : []));
  }

  /** Maximum number of attempts, one after another, until an item has had its own: all of a `free` may be of one target. */
  get rounds(): number {
    return MAX_RUNNING / MAX_PER_TARGET + 1;
  }

  add(target: string, item: T): void {
    this.#waiting = [...this.#waiting, { target, item }];
    this.#startNext();
  }

  /** Resolves once nothing runs or waits. */
  async idle(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }

  #startNext(): void {
    for (const waiting of this.#waiting) {
      const { item, target } = waiting;
      const count = this.#running.get(target) ?? 0;
      if (this.#tasks.size >= MAX_RUNNING) return;
      if (count >= MAX_PER_TARGET) continue;
      this.#waiting = this.#waiting.filter((each) => each !== waiting);
      this.#running.set(target, count + 1);
      const task = this.#work(item).finally(() => {
        this.#tasks.delete(task);
        const left = (this.#running.get(target) ?? 1) - 1;
        if (left > 0) this.#running.set(target, left);
        else this.#running.delete(target);
        this.#startNext();
      });
      this.#tasks.add(task);
    }
  }
}
