import type { StoreLocation } from "../config/store.ts";
import type { SessionStatus } from "../domain/session.ts";
import type {
  Append,
  Clock,
  Logger,
  NewDelivery,
  Outbox,
  SessionBackend,
  SessionCounts,
  SessionLog,
  SessionRecord,
  StoreMaintenance,
} from "../engine/ports.ts";
import { newestFirst } from "./listing.ts";
import type { OwnNode } from "./node-row.ts";
import { Database } from "./postgres/connect/database.ts";
import { PostgresBackend } from "./postgres/postgres-backend.ts";
import { SqliteBackend } from "./sqlite/backend.ts";
import { StoreConnection } from "./sqlite/connect/store-connection.ts";
import { openConnection, openInMemory } from "./sqlite/connect/open-file.ts";

/** Opens stores of all kinds, and wraps them. */

export interface StoreOptions extends OwnNode {
  readonly log: Logger;
}

/** Returns the store at `location`. The first call opens the file, or creates a missing one. */
export function openStore(location: StoreLocation, { log, ...self }: StoreOptions): SessionBackend {
  const memory = new SqliteBackend(self, new StoreConnection({ kind: "memory" }, openInMemory));
  switch (location.kind) {
    case "memory":
      return memory;
    case "postgres":
      return withEphemeral(new PostgresBackend(self, new Database(location)), memory, self.clock);
    case "sqlite": {
      const access = new StoreConnection(location, async () => openConnection(location.file, log));
      return withEphemeral(new SqliteBackend(self, access), memory, self.clock);
    }
  }
}

const CLOSED_RETENTION_MS = 3_600_000;

function isEnd(status: SessionStatus): boolean {
  return status === "closed" || status === "cancelled";
}

/**
 * Combines two stores into one: sessions with `persistSession: false`, which leave no trace, live in the memory of this server
 * and end with the server; all others live in `behind`. Other servers do not see sessions in memory.
 */
function withEphemeral(behind: SessionBackend, memory: SessionBackend, clock: Pick<Clock, "now">): SessionBackend {
  const ephemeral = new Set<string>();
  const of = (id: string) => (ephemeral.has(id) ? memory : behind);
  return {
    // Includes the ledger, `feed.read` and `machines`, because sessions in memory stay at their node.
    ...behind,
    rows: {
      // Includes `holderOf`, because sessions in memory leave no transcript.
      ...behind.rows,
      create: async (session) => {
        if (session.spec.persistSession !== false) return behind.rows.create(session);
        const done = await memory.rows.create(session);
        ephemeral.add(done.record.id);
        return done;
      },
      list: async (query) => {
        const kept = await behind.rows.list(query);
        if (ephemeral.size === 0) return kept;
        const both: SessionRecord[] = [...kept, ...(await memory.rows.list(query))];
        return both.toSorted(newestFirst).slice(0, query.limit);
      },
      get: async (id) => of(id).rows.get(id),
      raw: async (id) => of(id).rows.raw(id),
      principalOf: async (id) => of(id).rows.principalOf(id),
      update: async (id, ...change) => of(id).rows.update(id, ...change),
    },
    log: combineLogs(behind, memory.log, (id) => ephemeral.has(id)),
    leases: {
      // Includes `abandoned`, because sessions in memory end with their owner.
      ...behind.leases,
      heartbeat: async (ttlMs) => {
        // Memory first, because its lease does not depend on the disk.
        await memory.leases.heartbeat(ttlMs);
        return behind.leases.heartbeat(ttlMs);
      },
      atWork: async () => [...(await behind.leases.atWork()), ...(await memory.leases.atWork())],
      claim: async (id) => of(id).leases.claim(id),
      release: async (lease) => of(lease.sessionId).leases.release(lease),
    },
    inbox: {
      send: async (id, ...command) => of(id).inbox.send(id, ...command),
      receive: (lease, signal) => of(lease.sessionId).inbox.receive(lease, signal),
    },
    // Sessions in memory leave no trace, so the feed has no items of them.
    feed: behind.feed,
    outbox: combineOutboxes(behind.outbox, memory.outbox, (id) => ephemeral.has(id)),
    maintenance: combineMaintenance(behind.maintenance, memory.maintenance, clock),
    close: async () => {
      await memory.close();
      await behind.close();
    },
  };
}

function combineLogs(
  { ledger: shared, log }: SessionBackend,
  memory: SessionLog,
  isEphemeral: (sessionId: string) => boolean,
): SessionLog {
  const of = (sessionId: string) => (isEphemeral(sessionId) ? memory : log);
  return {
    append: async (lease, change) => {
      const { ledger = [], ...own } = change;
      if (!isEphemeral(lease.sessionId)) return log.append(lease, change);
      // All sessions share the ledger of the store behind.
      if (ledger.length > 0) await shared.apply(ledger);
      return memory.append(lease, own);
    },
    read: async (id, ...page) => of(id).read(id, ...page),
    tail: (id, ...from) => of(id).tail(id, ...from),
  };
}

/** Subscriptions, and deliveries of sessions that are no secret, are rows of `behind`. */
function combineOutboxes(behind: Outbox, memory: Outbox, isEphemeral: (sessionId: string) => boolean): Outbox {
  const of = (sessionId: string) => (isEphemeral(sessionId) ? memory : behind);
  return {
    ...behind,
    add: async (sessionId, deliveries) => of(sessionId).add(sessionId, deliveries),
    withdraw: async (sessionId, ...which) => of(sessionId).withdraw(sessionId, ...which),
    take: async (query) => {
      const own = await memory.take(query);
      const limit = query.limit - own.length;
      return limit === 0 ? own : [...own, ...(await behind.take({ ...query, limit }))];
    },
    dueInMs: async (scope) => {
      const due = [await memory.dueInMs(scope), await behind.dueInMs(scope)].filter((ms) => ms !== undefined);
      return due.length === 0 ? undefined : Math.min(...due);
    },
    settle: async (delivery, result) => of(delivery.sessionId).settle(delivery, result),
  };
}

function combineMaintenance(
  behind: StoreMaintenance,
  memory: StoreMaintenance,
  clock: Pick<Clock, "now">,
): StoreMaintenance {
  return {
    // Includes `size`, which counts only persistent data.
    ...behind,
    count: async () => sumCounts(await behind.count(), await memory.count()),
    principals: async () => [...new Set([...(await behind.principals()), ...(await memory.principals())])],
    purge: async (query) => {
      const kept = await behind.purge(query);
      const limit = query.limit - kept;
      // Keeps a closed session readable for an hour only: no turn can follow, and memory is dearer than a file.
      const before = Math.max(query.before, clock.now() - CLOSED_RETENTION_MS);
      const ended = await memory.purge({ ...query, before, statuses: query.statuses.filter(isEnd), limit });
      return kept + ended;
    },
    forget: async () => void (await Promise.all([behind.forget(), memory.forget()])),
  };
}

function sumCounts(one: SessionCounts, other: SessionCounts): SessionCounts {
  const sums: Record<string, number> = { ...one };
  for (const [status, number] of Object.entries(other)) sums[status] = (sums[status] ?? 0) + number;
  return sums;
}

/** Called for each change of a session by this node, once durable; in order for each session. */
export type OnAppended = (sessionId: string, change: Append) => void;

/**
 * Wraps a store to report all changes written through it, so that counts match the log. Each event is written by one node, so
 * that the counts of all nodes add up. `onAppended` must not throw: the change is already stored.
 */
export function withObserver(backend: SessionBackend, onAppended: OnAppended): SessionBackend {
  const { log } = backend;
  return {
    ...backend,
    log: {
      ...log,
      append: async (lease, change) => {
        await log.append(lease, change);
        onAppended(lease.sessionId, change);
      },
    },
  };
}

/** Returns the messages to the operator's webhook for a change. Must not throw. */
export type DeliveriesOf = (sessionId: string, change: Append) => readonly NewDelivery[];

/** Wraps a store to add messages to the changes written through it, in the same transaction. */
export function withDeliveries(backend: SessionBackend, deliveriesOf: DeliveriesOf): SessionBackend {
  const { log } = backend;
  const append: SessionLog["append"] = async (lease, change) => {
    const added = deliveriesOf(lease.sessionId, change);
    return log.append(lease, { ...change, deliveries: [...(change.deliveries ?? []), ...added] });
  };
  return { ...backend, log: { ...log, append } };
}
