import { HOST, type NodeRow, type Self } from "./node.ts";

/**
 * Who is alive. A process of this machine that has gone is dead at once, by pid and start time. One that is there, or that
 * cannot be seen from here, may hang: that is known by its lease, which it does not renew. The lease is a time of day, and
 * clocks are set: so an expired lease is watched, and counts as expired when it was not renewed for a third of its length on the
 * monotonic clock of this process. A living owner renews twice as often.
 */

/** A third of a lease, ms. */
export const WATCH_MS = 10_000;
/** Maximum length of a lease, ms: one that runs out later than this was given before the clock was set back. */
const MAX_LEASE_MS = 60_000;

interface Seen {
  readonly expiresAt: number;
  /** When it was first seen so, in ticks. */
  readonly since: number;
}

export class LivenessCheck {
  readonly #self: Self;
  readonly #seen = new Map<string, Seen>();
  /** Processes that have ended: a pid that returns has another start time. */
  #gone = new Set<string>();
  /** This node's own lease: until when it holds, in ticks. */
  #ownUntil = 0;
  ttlMs = 0;

  constructor(self: Self) {
    this.#self = self;
  }

  /** This node has just renewed its lease; `since` is when it began to. */
  renewed(ttlMs: number, since: number): void {
    this.ttlMs = ttlMs;
    this.#ownUntil = since + ttlMs;
  }

  /** A node that does not know whether it is still alive must not take what others may just be taking from it. */
  get isLeased(): boolean {
    return this.#self.clock.tick() < this.#ownUntil;
  }

  /** For the span of one call: the system is asked for each process once. */
  begin(): (node: NodeRow) => Promise<boolean> {
    const asked = new Map<string, Promise<boolean>>();
    return async (node) => {
      const known = asked.get(node.nodeId) ?? this.#isAlive(node);
      asked.set(node.nodeId, known);
      return known;
    };
  }

  /** Which of all nodes live; what is remembered of others is forgotten. */
  async living(nodes: readonly NodeRow[]): Promise<string[]> {
    const isAlive = this.begin();
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
