import {
  FencedError,
  type AgentRuntime,
  type Clock,
  type LeaseTerms,
  type Logger,
  type SessionBackend,
  type SessionLeases,
  type SessionLog,
  type StoreMachines,
} from "./ports.ts";

/**
 * Lease on a store of one machine, ms. It has no end by itself, because the processes of a dead node are found there. `renewMs`
 * is half of `WATCH_MS`, the time for which other nodes watch an expired lease (a clock may have been set) before they take a
 * session: a living owner renews in that time.
 */
const ONE_MACHINE = { ttlMs: 30_000, renewMs: 5_000, endMs: Infinity, againMs: 2_000 } as const;
/** Delay after a failed renewal on a store of several machines, ms. */
const AGAIN_MS = 500;
/** Time after which a renewal without an answer counts as failed, ms. Its answer still counts when it comes. */
const ANSWER_MS = 1_500;
/** Interval of looks whether the lease has ended, ms; after a freeze or sleep the first look comes at once. */
const LOOK_MS = 1_000;

interface Dependencies {
  readonly backend: {
    readonly leases: Pick<SessionLeases, "heartbeat">;
    readonly machines?: Pick<StoreMachines, "lease"> | undefined;
  };
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly runtime: Pick<AgentRuntime, "leaseRenewed">;
}

interface Handlers {
  /** Called after each renewal. */
  readonly onRenewed: () => void;
  readonly onFailed: (error: unknown) => void;
  /** Called when others may own the sessions of this node soon, or do already. */
  readonly onEnded: () => void;
}

/**
 * Renews the lease of this node. On a store of several machines, the lease ends by this node's own clock `endMs` after the
 * beginning of the last successful renewal, well before another node may claim a session.
 */
export class LeaseRenewal {
  readonly #dependencies: Dependencies;
  readonly #handlers: Handlers;
  readonly #terms: LeaseTerms & { readonly againMs: number };
  #beginning: Promise<void> | undefined;
  /** `elapsed` at the beginning of the last successful renewal; `undefined` without a lease. */
  #since: number | undefined;
  #cancelRenewal: (() => void) | undefined;
  #cancelLook: (() => void) | undefined;
  #isStopped = false;

  constructor(dependencies: Dependencies, handlers: Handlers) {
    this.#dependencies = dependencies;
    this.#handlers = handlers;
    const lease = dependencies.backend.machines?.lease;
    this.#terms = lease ? { ...lease, againMs: AGAIN_MS } : ONE_MACHINE;
  }

  /** True while this node may go on with its sessions. */
  get isHeld(): boolean {
    this.#endIfOver();
    return this.#since !== undefined;
  }

  /** Resolves once this node holds its lease. Begins the lease with the first session, because starting up needs none. */
  async ensure(): Promise<void> {
    if (this.isHeld) return;
    this.#beginning ??= this.#renew().finally(() => (this.#beginning = undefined));
    await this.#beginning;
  }

  /**
   * Returns `backend` with a log that is not written once the lease has ended, because a process that was frozen may write
   * before its timers run.
   */
  guard(backend: SessionBackend): SessionBackend {
    if (!backend.machines) return backend;
    const append: SessionLog["append"] = async (lease, change) => {
      if (!this.isHeld) throw new FencedError(`the lease of node ${lease.nodeId} has ended`);
      await backend.log.append(lease, change);
    };
    return { ...backend, log: { ...backend.log, append } };
  }

  /** Renews no more. The end of the lease has no effect either, because the caller gives all sessions up. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelRenewal?.();
    this.#cancelLook?.();
  }

  async #renew(): Promise<void> {
    const { backend, clock } = this.#dependencies;
    const { endMs, renewMs, ttlMs } = this.#terms;
    // After a freeze, ends what has passed: a renewal now would hide that another node may have claimed sessions.
    this.#endIfOver();
    const since = clock.elapsed();
    const renewal = backend.leases.heartbeat(ttlMs).then(
      (hadLapsed) => this.#onRenewed(since, hadLapsed),
      (error: unknown) => {
        this.#handlers.onFailed(error);
        throw error;
      },
    );
    await (endMs === Infinity ? renewal : this.#withinLimit(renewal));
    this.#renewIn(renewMs);
    this.#handlers.onRenewed();
  }

  /** Throws if the answer came too late to count. */
  #onRenewed(since: number, hadLapsed: boolean): void {
    if (this.#isStopped) return;
    if (hadLapsed) this.#end();
    const left = this.#leftOf(since);
    if (left <= 0) throw new Error("the answer came too late");
    this.#since = Math.max(since, this.#since ?? since);
    if (left === Infinity) return;
    this.#dependencies.runtime.leaseRenewed(this.#leftOf(this.#since));
    this.#look();
  }

  /** Rejects if `renewal` hangs, as with a database that is cut off. */
  async #withinLimit(renewal: Promise<void>): Promise<void> {
    const { clock } = this.#dependencies;
    let cancel: () => void = () => undefined;
    const late = new Promise<never>((_, reject) => {
      cancel = clock.after(ANSWER_MS, () => reject(new Error(`the store did not answer in ${String(ANSWER_MS)} ms`)));
    });
    await Promise.race([renewal, late]).finally(() => cancel());
  }

  #renewIn(ms: number): void {
    const { clock, log } = this.#dependencies;
    this.#cancelRenewal?.();
    if (this.#isStopped) return;
    this.#cancelRenewal = clock.after(ms, () => {
      this.#renew().catch((error: unknown) => {
        log.warn("lease not renewed", { error: String(error) });
        this.#renewIn(this.#terms.againMs);
      });
    });
  }

  /** Looks again until the lease has ended. */
  #look(): void {
    const { clock } = this.#dependencies;
    this.#cancelLook?.();
    this.#endIfOver();
    if (this.#since === undefined) return;
    this.#cancelLook = clock.after(Math.min(this.#leftOf(this.#since), LOOK_MS), () => this.#look());
  }

  #leftOf(since: number): number {
    return this.#terms.endMs - (this.#dependencies.clock.elapsed() - since);
  }

  #endIfOver(): void {
    if (this.#since !== undefined && this.#leftOf(this.#since) <= 0) this.#end();
  }

  #end(): void {
    if (this.#since === undefined || this.#isStopped) return;
    this.#since = undefined;
    this.#cancelLook?.();
    this.#dependencies.log.warn("this server has not renewed its lease in time: it gives its sessions up");
    this.#handlers.onEnded();
  }
}
