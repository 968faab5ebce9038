import type { CommandReply } from "../../domain/command.ts";
import type { StoredEvent } from "../../domain/event.ts";
import { type Append, type InboxItem, type Lease, NoAnswerError } from "../../engine/ports.ts";
import type {
  Feed,
  Ledger,
  Outbox,
  SessionBackend,
  SessionInbox,
  SessionLeases,
  SessionLog,
  SessionRecord,
  SessionRows,
  StoreMachines,
  StoreMaintenance,
} from "../../engine/ports.ts";
import { ActiveSessionCache } from "../active-sessions.ts";
import { awaitReply, receiveCommands } from "../command-reading.ts";
import { wakes } from "../feed-cursor.ts";
import { GroupWriter } from "../group-writer.ts";
import { readableSessions, wholeList } from "../listing.ts";
import type { OwnNode } from "../node-row.ts";
import { recordOf, type SessionRow } from "../rows.ts";
import { tailLog, type Topic } from "../session-watch.ts";
import { type AppendJob, prepareJob, storeAppends, takeAppends } from "./append.ts";
import { dropCommand, findNextCommand, readReply, sendCommand, storeReply } from "./command-table.ts";
import type { Database } from "./connect/database.ts";
import { DatabaseWatch } from "./database-watch.ts";
import { clearDeleted, deleteEnded, storedBytes } from "./deletion.ts";
import { followLog, readLog } from "./event-table.ts";
import { databaseLedger, forgetOldEntries } from "./ledger-table.ts";
import { databaseFeed, forgetItems, type UseDatabase } from "./feed-table.ts";
import { readList } from "./list-pages.ts";
import { LocalProcesses, MACHINE } from "./local-processes.ts";
import {
  claimForNode,
  type KnownNode,
  placeColumns,
  readNodes,
  readServers,
  readUrls,
  releaseFromNode,
  renewNode,
} from "./node-table.ts";
import { databaseOutbox, forgetDeliveries } from "./outbox-table.ts";
import { databaseMachines } from "./store-machines.ts";
import {
  countByStatus,
  createSession,
  findAbandoned,
  findByTranscript,
  findOwnPrincipal,
  findSession,
  findSessions,
  readActiveHeads,
  readPrincipals,
  readRaw,
  settleSession,
  updateSession,
} from "./session-table.ts";

const EVERY: readonly Topic[] = ["commands", "log", "replies"];

/** Node on a PostgreSQL database. Connects to nothing before the first call. */
export class PostgresBackend implements SessionBackend {
  readonly nodeId: string;
  readonly #self: OwnNode;
  readonly #db: Database;
  readonly #changes: DatabaseWatch;
  readonly #processes: LocalProcesses;
  readonly #active = new ActiveSessionCache();
  readonly #appends = new GroupWriter<AppendJob>(async (jobs) => storeAppends(this.#db, jobs), takeAppends);
  readonly #running = new Set<Promise<unknown>>();
  readonly ledger: Ledger;
  readonly feed: Feed;
  readonly outbox: Outbox;
  readonly machines: StoreMachines;
  #hasLease = false;
  #closing: Promise<void> | undefined;

  constructor(self: OwnNode, db: Database) {
    this.nodeId = self.nodeId;
    this.#self = self;
    this.#db = db;
    this.#processes = new LocalProcesses(self);
    this.#changes = new DatabaseWatch(db, self.nodeId);
    this.ledger = databaseLedger(db, () => self.clock.now());
    const use: UseDatabase = async (work) => this.#use(work);
    this.feed = databaseFeed(use, this.#changes);
    this.outbox = databaseOutbox(use, { nodeId: self.nodeId, onAdded: () => this.#changes.announce("", ["feed"]) });
    const isAlive = async (node: KnownNode) => this.#processes.createCheck()(node);
    this.machines = databaseMachines({ self, isAlive, changes: this.#changes, use });
  }

  readonly rows: SessionRows = {
    create: async (session) => {
      const { created, row } = await this.#use(async (db) => createSession(db, session));
      return { record: await this.#record(row), created };
    },
    get: async (id) => this.#recordIf(await this.#use(async (db) => findSession(db, id))),
    holderOf: async (id) => this.#recordIf(await this.#use(async (db) => findByTranscript(db, id))),
    principalOf: async (id) => this.#use(async (db) => findOwnPrincipal(db, id)),
    update: async (id, rev, patch) =>
      this.#record(await this.#use(async (db) => updateSession(db, { id, rev, patch }))),
    list: async (query) =>
      wholeList(query, async (wanted) => {
        const part = await this.#use(async (db) => readList(db, wanted));
        return { ...part, records: await this.#records(part.rows) };
      }),
    raw: async (id) => this.#use(async (db) => readRaw(db, id)),
  };

  readonly log: SessionLog = {
    append: async (lease, change) => this.#append(lease, change),
    read: async (id, from, limit, types) => this.#use(async (db) => readLog(db, id, { from, limit }, types)),
    tail: (id, from, signal) => this.#tail(id, from, signal),
  };

  readonly leases: SessionLeases = {
    heartbeat: async (ttlMs) => {
      const leftMs = await this.#use(async (db) => renewNode(db, this.#self, ttlMs));
      const hadLease = this.#hasLease;
      this.#hasLease = true;
      // Without a former lease, this is the first, or the node was forgotten.
      return leftMs === undefined ? hadLease : leftMs <= 0;
    },
    claim: async (id) => {
      const lease = await this.#use(async (db) => this.#claim(db, id));
      if (lease) this.#changes.announce(id, ["commands"]);
      return lease;
    },
    release: async (lease) => {
      await this.#use(async (db) => releaseFromNode(db, lease));
      this.#changes.announce(lease.sessionId, ["commands"]);
    },
    abandoned: async (limit) => {
      const { dead, here, others } = await this.#nodes();
      return readableSessions(limit, async (page) =>
        this.#records(await this.#use(async (db) => findAbandoned(db, { ...page, dead, here, others }))),
      );
    },
    atWork: async () => {
      const { livingHere } = await this.#nodes();
      const heads = await this.#use(async (db) => readActiveHeads(db, livingHere));
      const changed = this.#active.changed(heads).map(({ id }) => id);
      const rows = changed.length > 0 ? await this.#use(async (db) => findSessions(db, changed)) : [];
      return this.#active.update(heads, rows);
    },
    urls: async () => this.#use(readUrls),
    servers: async () => {
      const all = await this.#use(async (db) => readServers(db, this.nodeId));
      const isLiving = await Promise.all(all.map(async ({ pid, startedAt }) => this.#self.isRunning(pid, startedAt)));
      return all.filter((_, index) => isLiving[index]).map(({ pid, urls }) => ({ pid, urls }));
    },
  };

  readonly inbox: SessionInbox = {
    send: async (sessionId, command, timeoutMs) => {
      const { id } = command;
      const sent = { sessionId, id, data: JSON.stringify(command), timeoutMs };
      const { expiresAt, reply: known } = await this.#use(async (db) => sendCommand(db, sent));
      if (known) return known;
      this.#changes.announce(sessionId, ["commands"]);
      const reply = async () => this.#use(async (db) => readReply(db, sent));
      const answer = await awaitReply(this.#changes, { sessionId, timeoutMs, reply });
      // Accepts an answer at the last moment.
      const late = answer ?? (await this.#use(async (db) => dropCommand(db, { ...sent, expiresAt })));
      if (late) return late;
      throw new NoAnswerError(`the command was not answered within ${String(timeoutMs)} ms`);
    },
    receive: (lease, signal) => this.#receive(lease, signal),
  };

  readonly maintenance: StoreMaintenance = {
    size: async () => this.#use(storedBytes),
    count: async () => this.#use(countByStatus),
    principals: async () => this.#use(readPrincipals),
    purge: async (query) => {
      const { living } = await this.#nodes();
      const deleted = await this.#use(async (db) => deleteEnded(db, { ...query, living }));
      for (const id of deleted) this.#changes.announce(id, EVERY);
      await this.#use(clearDeleted);
      return deleted.length;
    },
    forget: async () => {
      await this.#use(async (db) => forgetOldEntries(db, this.#self.clock.now()));
      for (const forget of [forgetDeliveries, forgetItems]) await this.#use(forget);
    },
  };

  readonly close = async (): Promise<void> => {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  };

  async #append(lease: Lease, change: Append): Promise<void> {
    await this.#use(
      async () =>
        new Promise<void>((resolve, reject) => {
          this.#appends.add(prepareJob(lease, change, (error) => (error === undefined ? resolve() : reject(error))));
        }),
    );
    // An append sends no command, so waiting owners and senders need not read.
    this.#changes.announce(lease.sessionId, ["log"]);
    if (wakes(change)) this.#changes.announce("", ["feed"]);
  }

  async *#tail(sessionId: string, from: number, signal: AbortSignal): AsyncGenerator<StoredEvent, void> {
    this.#assertOpen();
    const read = async (next: number, limit: number) =>
      this.#use(async (db) => followLog(db, sessionId, { from: next, limit }));
    yield* tailLog(this.#changes, { sessionId, from, signal, read });
  }

  async *#receive(lease: Lease, signal: AbortSignal): AsyncGenerator<InboxItem, void> {
    this.#assertOpen();
    const next = async (inHand: ReadonlySet<string>) => this.#use(async (db) => findNextCommand(db, lease, inHand));
    const answer = async (id: string, reply: CommandReply): Promise<void> => {
      await this.#use(async (db) => storeReply(db, lease, id, reply));
      this.#changes.announce(lease.sessionId, ["commands", "replies"]);
    };
    yield* receiveCommands(lease, { changes: this.#changes, signal, next, answer });
  }

  /** Claims a session. Looks at the process of an owner on this machine, which may have exited before its lease ran out. */
  async #claim(db: Database, id: string): Promise<Lease | undefined> {
    const first = await claimForNode(db, id, this.#self);
    if ("lease" in first) return first.lease;
    const row = first.owner === undefined ? undefined : await findSession(db, id);
    if (!row || row.nodeId === null) return undefined;
    const { expiresAt, nodeId } = row;
    if (await this.#processes.createCheck()({ ...row, nodeId })) return undefined;
    const second = await claimForNode(db, id, this.#self, { nodeId, expiresAt });
    return "lease" in second ? second.lease : undefined;
  }

  /** Sorts all nodes, by their leases and, on this machine, their processes. */
  async #nodes() {
    const nodes = await this.#use(readNodes);
    const isAlive = this.#processes.createCheck();
    const alive = await Promise.all(nodes.map(isAlive));
    const living = nodes.filter((_, index) => alive[index]);
    const isOwn = ({ nodeId }: KnownNode) => nodeId === this.nodeId;
    const ids = (some: readonly KnownNode[]) => some.map(({ nodeId }) => nodeId);
    const places = (some: readonly KnownNode[]) =>
      placeColumns(some.flatMap(({ facts, isDraining }) => (facts && !isDraining ? [facts] : [])));
    return {
      dead: ids(nodes.filter((_, index) => !alive[index])),
      living: ids(living),
      livingHere: ids(living.filter(({ host }) => host === MACHINE)),
      here: places(living.filter(isOwn)),
      others: places(living.filter((node) => !isOwn(node))),
    };
  }

  async #shutDown(): Promise<void> {
    this.#changes.close();
    this.#db.stopRepeating();
    await this.#appends.flush();
    await Promise.allSettled(this.#running);
    await this.#changes.end();
    await this.#db.close();
  }

  #assertOpen(): void {
    if (this.#closing) throw new Error(`node ${this.nodeId}: the store is closed`);
  }

  /** Runs `work`, which `close` waits for. */
  async #use<T>(work: (db: Database) => Promise<T>): Promise<T> {
    this.#assertOpen();
    const running = work(this.#db);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #recordIf(row: SessionRow | undefined): Promise<SessionRecord | undefined> {
    return row && this.#record(row);
  }

  async #records(rows: readonly SessionRow[]): Promise<SessionRecord[]> {
    const isAlive = this.#processes.createCheck();
    return Promise.all(rows.map(async (row) => this.#record(row, isAlive)));
  }

  async #record(row: SessionRow, isAlive = this.#processes.createCheck()): Promise<SessionRecord> {
    const { nodeId, nodeName } = row;
    const name = nodeName ?? undefined;
    const owner = nodeId === null ? undefined : { nodeId, name, alive: await isAlive({ ...row, nodeId }) };
    // Settles nothing for a living owner, who stores the state again. If the write fails, the columns stay unchanged.
    if (!row.isSettled && !owner?.alive) await settleSession(this.#db, row).catch(() => undefined);
    return recordOf(row, owner);
  }
}
