import type { Clock, SessionBackend } from "../../../src/engine/ports.ts";
import { SqliteBackend } from "../../../src/store/sqlite/backend.ts";
import type { Topic } from "../../../src/store/session-watch.ts";
import { ChangeWatcher } from "../../../src/store/sqlite/change-watcher.ts";
import { StoreConnection } from "../../../src/store/sqlite/connect/store-connection.ts";
import { openInMemory } from "../../../src/store/sqlite/connect/open-file.ts";

/** Connects the nodes of one process on a store in memory: each is notified of the others' changes directly. */
class SharedChanges extends ChangeWatcher {
  readonly #all: Set<SharedChanges>;

  constructor(access: StoreConnection, all: Set<SharedChanges>) {
    super(access);
    this.#all = all.add(this);
  }

  override notify(sessionId: string, topics?: readonly Topic[]): void {
    for (const each of this.#all) each.#notify(sessionId, topics);
  }

  #notify(sessionId: string, topics?: readonly Topic[]): void {
    super.notify(sessionId, topics);
  }
}

/** A store in memory; a test can connect any number of nodes. A node counts as dead once its lease has run out. */
export function memoryStore({ tick }: Pick<Clock, "tick">): { connect(nodeId: string): SessionBackend } {
  const connection = openInMemory();
  const all = new Set<SharedChanges>();
  const leaseEnds = new Map<string, number>();
  const isRunning = async (_: number, nodeId: string) => Promise.resolve((leaseEnds.get(nodeId) ?? 0) > tick());
  const connect = (nodeId: string): SessionBackend => {
    const access = new StoreConnection({ kind: "memory" }, async () =>
      Object.assign(await connection, { close: () => undefined }),
    );
    const self = { nodeId, process: { pid: 1, startedAt: nodeId }, isRunning, clock: { now: tick, tick } };
    const node: SessionBackend = new SqliteBackend(self, access, new SharedChanges(access, all));
    const heartbeat = async (ttlMs: number): Promise<boolean> => {
      leaseEnds.set(nodeId, tick() + ttlMs);
      return node.leases.heartbeat(ttlMs);
    };
    return { ...node, leases: { ...node.leases, heartbeat } };
  };
  return { connect };
}
