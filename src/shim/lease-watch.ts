import { uptime } from "node:os";
import type { Connection } from "./connection.ts";
import { Refusal } from "./exchange.ts";
import type { ShimChild } from "./shim-child.ts";

/** Interval of looks at leases, ms; after a sleep of the machine, its processes run on for no longer. */
const LOOK_MS = 1_000;

/**
 * Ends processes once the lease of their owner has passed, because another node may own their sessions soon. Asks nobody: the
 * owner may be dead or frozen. Counts the sleep of the machine.
 */
export class LeaseWatch {
  /** Ends of leases. A connection without a lease owns without end, and so do its processes. */
  readonly #owners = new WeakMap<Connection, number>();
  readonly #processes = new Map<ShimChild, number>();
  readonly #onPassed: (process: ShimChild) => void;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;

  constructor(onPassed: (process: ShimChild) => void, now = () => uptime() * 1_000) {
    this.#onPassed = onPassed;
    this.#now = now;
  }

  /** Extends the lease of `owner`, for its `processes` that are not over yet. */
  renew(owner: Connection, forMs: number, processes: readonly ShimChild[]): void {
    // A shim that was frozen may read this message before its timer runs.
    this.look();
    this.#owners.set(owner, this.#now() + forMs);
    for (const process of processes) this.bind(process, owner);
  }

  /** Throws `Refusal` if `owner` had a lease that has passed. */
  check(owner: Connection): void {
    this.look();
    if ((this.#owners.get(owner) ?? Infinity) <= this.#now()) throw new Refusal("the lease of this owner has passed");
  }

  /** Gives `process` the lease of its new owner. After the end of the connection, the lease holds on. */
  bind(process: ShimChild, owner: Connection): void {
    const until = this.#owners.get(owner);
    if (until === undefined) this.#processes.delete(process);
    else this.#processes.set(process, until);
    this.#watch();
  }

  forget(process: ShimChild): void {
    this.#processes.delete(process);
  }

  /** Ends the processes whose lease has passed. */
  look(): void {
    const now = this.#now();
    const passed = [...this.#processes].filter(([, until]) => until <= now);
    for (const [process] of passed) this.#processes.delete(process);
    for (const [process] of passed) this.#onPassed(process);
    this.#watch();
  }

  #watch(): void {
    clearTimeout(this.#timer);
    const left = Math.min(...this.#processes.values()) - this.#now();
    if (this.#processes.size > 0) this.#timer = setTimeout(() => this.look(), Math.min(Math.max(left, 0), LOOK_MS));
  }
}
