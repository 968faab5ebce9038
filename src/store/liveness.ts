import { HOST, type NodeRow, type OwnNode } from "./node-row.ts";

/**
 * Finds living nodes. A process of this machine that has exited is dead at once, by pid and start time. An existing process, or
 * one that cannot be seen from here, may hang, and then no longer renews its lease. The lease is a time of day, and clocks are
 * set: so an expired lease is watched, and counts as expired if not renewed for `WATCH_MS` on the monotonic clock of this
 * process. A living owner renews twice as often.
 */

/** Time for which an expired lease is watched, ms. A third of a lease. */
export const WATCH_MS = 10_000;
/** Maximum length of a lease, ms. A lease that ends later was given before the clock was set back. */
const MAX_LEASE_MS = 60_000;

interface ExpiredLease {
  readonly expiresAt: number;
  /** Time at which the node was first seen with `expiresAt`, in ticks. */
  readonly since: number;
}

export class LivenessCheck {
  readonly #self: OwnNode;
  readonly #seen = new Map<string, ExpiredLease>();
  /** Nodes whose processes have exited. Never alive again, because a reused pid has another start time. */
  #gone = new Set<string>();
  /** End of this node's own lease, in ticks. */
  #ownUntil = 0;
  ttlMs = 0;

  constructor(self: OwnNode) {
    this.#self = self;
  }

  /** Records a renewal of this node's lease, begun at `since` (in ticks). */
  noteRenewal(ttlMs: number, since: number): void {
    this.ttlMs = ttlMs;
    this.#ownUntil = since + ttlMs;
  }

  /**
   * True while this node holds its lease. Without a lease, the node must take over nothing, because others may be taking its
   * sessions.
   */
  get isLeased(): boolean {
    return this.#self.clock.tick() < this.#ownUntil;
  }

  /** Returns a check for one call, so that the system is asked for each process only once. */
  createCheck(): (node: NodeRow) => Promise<boolean> {
    const asked = new Map<string, Promise<boolean>>();
    return async (node) => {
      const known = asked.get(node.nodeId) ?? this.#isAlive(node);
      asked.set(node.nodeId, known);
      return known;
    };
  }

  /** Returns the ids of living nodes. Forgets everything about nodes not in `nodes`. */
  async living(nodes: readonly NodeRow[]): Promise<string[]> {
    const isAlive = this.createCheck();
    const alive = await Promise.all(nodes.map(isAlive));
    const known = new Set(nodes.map(({ nodeId }) => nodeId));
    this.#gone = new Set([...this.#gone].filter((nodeId) => known.has(nodeId)));
    for (const nodeId of this.#seen.keys()) if (!known.has(nodeId)) this.#seen.delete(nodeId);
    return nodes.filter((_, index) => alive[index]).map(({ nodeId }) => nodeId);
  }

  async #isAlive({ nodeId, host, pid, startedAt, expiresAt }: NodeRow): Promise<boolean> {
    if (nodeId === this.#self.nodeId) return this.isLeased;
    if (expiresAt === null || this.#gone.has(nodeId)) return false;
    if (host === HOST && pid !== null && startedAt !== null && !(await this.#self.isRunning(pid, startedAt))) {
      this.#gone.add(nodeId);
      return false;
    }
    return !this.#hasRunOut(nodeId, expiresAt);
  }

  #hasRunOut(nodeId: string, expiresAt: number): boolean {
    const { clock } = this.#self;
    const left = expiresAt - clock.now();
    if (left > 0 && left <= MAX_LEASE_MS) {
      this.#seen.delete(nodeId);
      return false;
    }
    const seen = this.#seen.get(nodeId);
    if (seen?.expiresAt === expiresAt) return clock.tick() - seen.since > WATCH_MS;
    this.#seen.set(nodeId, { expiresAt, since: clock.tick() });
    return false;
  }
}
