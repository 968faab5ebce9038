import type { Command, CommandReply } from "../domain/command.ts";
import type { StoredEvent } from "../domain/event.ts";
import {
  type Clock,
  ConflictError,
  FencedError,
  type InboxItem,
  type Lease,
  NoAnswerError,
  type SessionBackend,
  type SessionInbox,
  type SessionLeases,
  type SessionLog,
  type SessionRecord,
  type SessionRows,
  type StoreMaintenance,
} from "../engine/ports.ts";
import { Notifier, tail } from "./tail.ts";
import { MemorySession } from "./memory-session.ts";
import { newestFirst } from "./newest-first.ts";

/** Events that a tail reads at once. */
const TAIL_PAGE = 100;

export interface MemoryStore {
  /** A node on this store. All nodes of one store share its sessions. */
  connect(nodeId: string): SessionBackend;
}

/** Keeps sessions in the memory of this process; they end with it. The leases are measured in the ticks of `clock`. */
export function createMemoryStore(clock: Pick<Clock, "tick"> = { tick: () => performance.now() }): MemoryStore {
  const tables: Tables = { sessions: new Map(), keys: new Map(), leaseEnds: new Map(), clock };
  return { connect: (nodeId) => new MemoryBackend(nodeId, tables) };
}

interface Tables {
  readonly sessions: Map<string, MemorySession>;
  /** Session id by principal and idempotency key. */
  readonly keys: Map<string, string>;
  /** When the lease of a node runs out, in ticks. */
  readonly leaseEnds: Map<string, number>;
  readonly clock: Pick<Clock, "tick">;
}

class MemoryBackend implements SessionBackend {
  readonly nodeId: string;
  readonly #tables: Tables;
  readonly #closing = new Notifier();
  #closed = false;

  constructor(nodeId: string, tables: Tables) {
    this.nodeId = nodeId;
    this.#tables = tables;
  }

  readonly rows: SessionRows = {
    create: (request) =>
      this.#transaction(() => {
        const { sessions, keys } = this.#tables;
        const key = JSON.stringify([request.principal, request.idempotencyKey]);
        const known = sessions.get(request.id) ?? sessions.get(keys.get(key) ?? "");
        if (known) return { record: this.#record(known), created: false };
        const session = new MemorySession(request);
        sessions.set(session.id, session);
        if (request.idempotencyKey !== undefined) keys.set(key, session.id);
        return { record: this.#record(session), created: true };
      }),

    get: (id) =>
      this.#transaction(() => {
        const session = this.#tables.sessions.get(id);
        return session && this.#record(session);
      }),

    holderOf: (transcriptId) =>
      this.#transaction(() => {
        const { sessions } = this.#tables;
        const session =
          sessions.get(transcriptId) ?? [...sessions.values()].find((each) => each.transcripts.has(transcriptId));
        return session && this.#record(session);
      }),

    principalOf: (id) => this.#transaction(() => this.#tables.sessions.get(id)?.principal),

    update: (id, rev, patch) =>
      this.#transaction(() => {
        const session = this.#tables.sessions.get(id);
        if (!session) throw new ConflictError(`session ${id} is gone`);
        session.update(rev, patch);
        return this.#record(session);
      }),

    list: (query) =>
      this.#transaction(() => {
        const found = [...this.#tables.sessions.values()].filter((session) => session.matches(query));
        const page = found.toSorted(newestFirst).slice(0, query.limit);
        return page.map((session) => this.#record(session));
      }),

    raw: (id) => this.#transaction(() => this.#tables.sessions.get(id)?.raw()),
  };

  readonly log: SessionLog = {
    append: (lease, change) =>
      this.#transaction(() => {
        const session = this.#tables.sessions.get(lease.sessionId);
        if (!session) throw new FencedError(`session ${lease.sessionId} is gone`);
        session.append(lease, change);
      }),

    read: (id, from, limit, types) =>
      this.#transaction(() => this.#tables.sessions.get(id)?.read(from, limit, types) ?? []),

    tail: (id, from, signal) => this.#tail(id, from, signal),
  };

  readonly leases: SessionLeases = {
    heartbeat: (ttlMs) =>
      this.#transaction(() => {
        this.#tables.leaseEnds.set(this.nodeId, this.#tables.clock.tick() + ttlMs);
      }),

    claim: (id) =>
      this.#transaction(() => {
        const session = this.#tables.sessions.get(id);
        // A node that does not know whether it is still alive must not take what others may just be taking from it.
        if (!session || !this.#isAlive(this.nodeId)) return undefined;
        const fromOther = session.owner !== undefined && session.owner !== this.nodeId;
        if (fromOther && this.#hasLivingOwner(session)) return undefined;
        return session.claim(this.nodeId, fromOther);
      }),

    release: (lease) => this.#transaction(() => this.#tables.sessions.get(lease.sessionId)?.release(lease)),

    abandoned: (limit) =>
      this.#transaction(() => {
        const found = this.#atWork().filter((session) => !this.#hasLivingOwner(session));
        return found.slice(0, limit).map((session) => this.#record(session));
      }),

    atWork: () =>
      this.#transaction(() => {
        const found = this.#atWork().filter((session) => this.#hasLivingOwner(session));
        return found.map((session) => this.#record(session));
      }),

    // No other process uses it.
    urls: () => Promise.resolve([]),
    servers: () => Promise.resolve([]),
  };

  readonly inbox: SessionInbox = {
    send: async (id, command, timeoutMs) => {
      this.#assertOpen();
      const session = this.#tables.sessions.get(id);
      if (!session) throw new NoAnswerError(`there is no session ${id} to answer`);
      return session.inbox.ask(command, timeoutMs, this.#closing);
    },

    receive: (lease, signal) => this.#receive(lease, signal),
  };

  readonly maintenance: StoreMaintenance = {
    size: () => this.#transaction(() => [...this.#tables.sessions.values()].reduce((sum, { size }) => sum + size, 0)),

    count: () =>
      this.#transaction(() => {
        const counts: Record<string, number> = {};
        for (const { status } of this.#tables.sessions.values()) counts[status] = (counts[status] ?? 0) + 1;
        return counts;
      }),

    purge: (query) =>
      this.#transaction(() => {
        const { sessions, keys } = this.#tables;
        const ended = [...sessions.values()]
          .filter(({ id }) => query.ids === undefined || query.ids.includes(id))
          .filter(({ status, updatedAt }) => query.statuses.includes(status) && updatedAt < query.before)
          .filter((session) => !this.#hasLivingOwner(session))
          .toSorted((a, b) => newestFirst(b, a))
          .slice(0, query.limit);
        for (const session of ended) {
          sessions.delete(session.id);
          session.delete();
        }
        for (const [key, id] of keys) if (!sessions.has(id)) keys.delete(key);
        return ended.length;
      }),
  };

  readonly close = (): Promise<void> => {
    this.#closed = true;
    this.#closing.notify();
    return Promise.resolve();
  };

  async *#tail(id: string, from: number, signal: AbortSignal): AsyncGenerator<StoredEvent, void> {
    this.#assertOpen();
    const session = this.#tables.sessions.get(id);
    if (!session) return;
    let next = Math.max(from, 1);
    const look = (): StoredEvent[] | undefined => {
      if (this.#closed || session.deleted) return undefined;
      const page = session.read(next, TAIL_PAGE);
      next += page.length;
      return page;
    };
    yield* tail({ notifiers: [session.notifier, this.#closing], signal, look });
  }

  async *#receive(lease: Lease, signal: AbortSignal): AsyncGenerator<InboxItem, void> {
    this.#assertOpen();
    const session = this.#tables.sessions.get(lease.sessionId);
    if (!session) return;
    const inHand = new Set<string>();
    // One at a time: while the owner worked on the last one, the next may have been withdrawn or the session lost.
    const look = (): Command[] | undefined => {
      if (this.#closed || !session.isHeldBy(lease)) return undefined;
      const command = session.inbox.next(inHand);
      return command ? [command] : [];
    };
    for await (const command of tail({ notifiers: [session.notifier, this.#closing], signal, look })) {
      inHand.add(command.id);
      const ack = (reply: CommandReply): Promise<void> =>
        this.#transaction(() => {
          if (session.isHeldBy(lease)) session.inbox.answer(command.id, reply);
          inHand.delete(command.id);
        });
      yield { command, ack };
    }
  }

  #atWork(): MemorySession[] {
    return [...this.#tables.sessions.values()].filter((session) => session.atWork);
  }

  /** Runs at once and to its end: nothing of another call comes in between, and what it throws is a rejection. */
  #transaction<T>(work: () => T): Promise<T> {
    return new Promise((resolve) => {
      this.#assertOpen();
      resolve(work());
    });
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error(`node ${this.nodeId}: the store is closed`);
  }

  #isAlive(nodeId: string): boolean {
    return (this.#tables.leaseEnds.get(nodeId) ?? 0) > this.#tables.clock.tick();
  }

  #hasLivingOwner(session: MemorySession): boolean {
    return session.owner !== undefined && this.#isAlive(session.owner);
  }

  #record(session: MemorySession): SessionRecord {
    const nodeId = session.owner;
    return session.record(nodeId === undefined ? undefined : { nodeId, alive: this.#isAlive(nodeId) });
  }
}
