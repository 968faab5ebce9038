/** Maximum number of attempts under way: in all, and to one target, so that a slow receiver does not hold up the others. */
const MAX_RUNNING = 16;
const MAX_PER_TARGET = 4;
/** Maximum number under way to targets of one owner, and of all owners, so that silent receivers leave slots for others. */
const MAX_PER_OWNER = MAX_RUNNING / 2;
const MAX_OWNED = MAX_RUNNING - MAX_PER_TARGET;

/** Receiver of an item. `owner`: the caller who has named the target; absent for a target of the operator. */
interface Target {
  readonly target: string;
  readonly owner?: string | undefined;
}

interface Waiting<T> extends Target {
  readonly item: T;
}

/** Runs `work` for each item: several at a time, few of one target, the oldest first. */
export class TargetQueue<T> {
  readonly #work: (item: T) => Promise<void>;
  readonly #onFree: () => void;
  readonly #tasks = new Map<Promise<void>, Target>();
  #waiting: readonly Waiting<T>[] = [];

  /** `work` must not reject. `onFree` is called after each end of a work. */
  constructor(work: (item: T) => Promise<void>, onFree: () => void) {
    this.#work = work;
    this.#onFree = onFree;
  }

  /** Number of items that may be added now. */
  get free(): number {
    return MAX_RUNNING - this.#tasks.size;
  }

  /** Targets and owners that have enough under way. Items of others begin at once, as far as there is a free slot. */
  get full(): { readonly targets: string[]; readonly owners: string[]; readonly isOwned: boolean } {
    const running = [...this.#tasks.values()];
    const owned = running.flatMap(({ owner }) => owner ?? []);
    const targets = repeated(
      running.map(({ target }) => target),
      MAX_PER_TARGET,
    );
    return { targets, owners: repeated(owned, MAX_PER_OWNER), isOwned: owned.length >= MAX_OWNED };
  }

  /**
   * Maximum number of attempts, one after another, until a taken item has had its own: all `free` items may be of one target.
   */
  get rounds(): number {
    return MAX_RUNNING / MAX_PER_TARGET + 1;
  }

  add(target: Target, item: T): void {
    this.#waiting = [...this.#waiting, { ...target, item }];
    this.#startNext();
  }

  /** Resolves once nothing runs or waits. */
  async idle(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all(this.#tasks.keys());
  }

  #startNext(): void {
    for (const waiting of this.#waiting) {
      const { item, owner, target } = waiting;
      if (this.#tasks.size >= MAX_RUNNING) return;
      const { isOwned, owners, targets } = this.full;
      if (targets.includes(target) || (owner !== undefined && (isOwned || owners.includes(owner)))) continue;
      this.#waiting = this.#waiting.filter((each) => each !== waiting);
      const task = this.#work(item).finally(() => {
        this.#tasks.delete(task);
        this.#startNext();
        this.#onFree();
      });
      this.#tasks.set(task, { target, owner });
    }
  }
}

/** Returns the texts that are in `all` at least `times` times. */
function repeated(all: readonly string[], times: number): string[] {
  return [...new Set(all)].filter((text) => all.filter((each) => each === text).length >= times);
}
