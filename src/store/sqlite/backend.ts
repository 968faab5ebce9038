import type { CommandReply } from "../../domain/command.ts";
import type { StoredEvent } from "../../domain/event.ts";
import { NoAnswerError } from "../../engine/ports.ts";
import type {
  Feed,
  InboxItem,
  Lease,
  SessionBackend,
  SessionInbox,
  SessionLeases,
  SessionLog,
  SessionRecord,
  SessionRows,
  StoreMaintenance,
} from "../../engine/ports.ts";
import type { StoreConnection } from "./connect/store-connection.ts";
import {
  abandonedSessions,
  activeSessions,
  allPrincipals,
  countSessions,
  getSession,
  hasSession,
  findHolder,
  listPart,
  findPrincipal,
  rawSession,
  settleUnreadable,
  prepareCreate,
  prepareUpdate,
} from "./sessions.ts";
import { ChangeWatcher } from "./change-watcher.ts";
import type { Connection } from "./connect/connection.ts";
import { readEvents, readTypes, prepareAppend } from "./events.ts";
import { answerCommand, nextCommand, postCommand, replyTo, withdrawCommand } from "./inbox.ts";
import { changeMark, forgetItems, readFeed } from "./feed.ts";
import { createLedger, forgetEntries } from "./ledger.ts";
import { createOutbox, forgetDeliveries } from "./outbox.ts";
import { ActiveSessionCache } from "../active-sessions.ts";
import { awaitReply, receiveCommands } from "../command-reading.ts";
import { readableSessions, wholeList } from "../listing.ts";
import { LivenessCheck } from "../liveness.ts";
import { allNodes, claimSession, isHeld, otherServers, releaseSession, renewLease, readNodeUrls } from "./leases.ts";
import type { OwnNode } from "../node-row.ts";
import { clearStep, deleteSession, endedSessions, shrinkStep, usedBytes } from "./purge.ts";
import { recordOf, type SessionRow } from "../rows.ts";
import { wakes } from "../feed-cursor.ts";
import { type Urgency, urgencyOf } from "../texts.ts";
import { tailFeed, tailLog } from "../session-watch.ts";
import { Writer } from "./writer.ts";

/** Node on an SQLite file. Opens, locks and writes nothing before the first call. */
export class SqliteBackend implements SessionBackend {
  readonly nodeId: string;
  readonly #self: OwnNode;
  readonly #access: StoreConnection;
  readonly #writer: Writer;
  readonly #changes: ChangeWatcher;
  readonly #active = new ActiveSessionCache();
  readonly #liveness: LivenessCheck;
  #closing: Promise<void> | undefined;

  constructor(self: OwnNode, access: StoreConnection, changes = new ChangeWatcher(access)) {
    this.nodeId = self.nodeId;
    this.#self = self;
    this.#access = access;
    this.#liveness = new LivenessCheck(self);
    this.#changes = changes;
    this.#writer = new Writer(access, () => this.#changes.broadcast());
  }

  readonly rows: SessionRows = {
    create: async (session) => {
      const { created, row } = await this.#change(session.id, "barrier", prepareCreate(session));
      return { record: await this.#record(row), created };
    },
    get: async (id) => {
      const row = await this.#read((db) => getSession(db, id));
      return row && this.#record(row);
    },
    holderOf: async (transcriptId) => {
      const row = await this.#read((db) => findHolder(db, transcriptId));
      return row && this.#record(row);
    },
    principalOf: async (id) => this.#read((db) => findPrincipal(db, id)),
    update: async (id, rev, patch) => this.#record(await this.#change(id, "barrier", prepareUpdate(id, rev, patch))),
    list: async (query) =>
      wholeList(query, async (wanted) => {
        const part = await this.#read((db) => listPart(db, wanted));
        return { ...part, records: await this.#records(part.rows) };
      }),
    raw: async (id) => this.#read((db) => rawSession(db, id)),
  };

  readonly log: SessionLog = {
    append: async (lease, change) => {
      this.#assertOpen();
      await this.#writer.write(urgencyOf(change), prepareAppend(lease, change), change.events.length);
      // An append sends no command, so waiting owners and senders need not read.
      this.#changes.notify(lease.sessionId, ["log"]);
      if (wakes(change)) this.#changes.notify("", ["feed"]);
    },

    read: async (id, from, limit, types) =>
      this.#read((db) => (types ? readTypes(db, id, types, { from, limit }) : readEvents(db, id, from, limit))),

    tail: (id, from, signal) => this.#tail(id, from, signal),
  };

  readonly leases: SessionLeases = {
    heartbeat: async (ttlMs) => {
      this.#assertOpen();
      await this.#access.assertSame();
      const since = this.#self.clock.tick();
      await this.#writer.write("immediate", (db) => renewLease(db, this.#self, ttlMs));
      this.#liveness.noteRenewal(ttlMs, since);
      // Looks at the leases of other nodes, too: the time since an expiry counts from the first look.
      await this.#livingNodes();
      return false;
    },

    claim: async (id) => {
      if (!this.#liveness.isLeased) return undefined;
      const row = await this.#read((db) => getSession(db, id));
      const owner = row && (await this.#record(row)).owner;
      const dead = row && owner?.alive === false ? { nodeId: owner.nodeId, expiresAt: row.expiresAt } : undefined;
      const claimer = { self: this.#self, ttlMs: this.#liveness.ttlMs };
      return this.#change(id, "barrier", (db) => claimSession(db, id, claimer, dead));
    },

    release: async (lease) => this.#change(lease.sessionId, "barrier", (db) => releaseSession(db, lease)),

    abandoned: async (limit) => {
      const living = await this.#livingNodes();
      return readableSessions(limit, async (page) =>
        this.#records(await this.#read((db) => abandonedSessions(db, { ...page, living }))),
      );
    },

    atWork: async () => {
      const living = await this.#livingNodes();
      return this.#read((db) => activeSessions(db, this.#active, living));
    },

    urls: async () => this.#read(readNodeUrls),
    servers: async () => this.#servers(),
  };

  readonly inbox: SessionInbox = {
    send: async (id, command, timeoutMs) => {
      const now = this.#self.clock.now();
      const posting = { sessionId: id, id: command.id, data: JSON.stringify(command), expiresAt: now + timeoutMs };
      const reply = (db: Connection): CommandReply | undefined => {
        if (!hasSession(db, id)) throw new NoAnswerError(`there is no session ${id} to answer`);
        return replyTo(db, id, command.id);
      };
      const known = await this.#change(id, "immediate", (db) => reply(db) ?? postCommand(db, posting, now));
      const answer =
        known ?? (await awaitReply(this.#changes, { sessionId: id, timeoutMs, reply: async () => this.#read(reply) }));
      if (answer) return answer;
      // Accepts an answer at the last moment.
      const late = await this.#change(id, "immediate", (db) => reply(db) ?? withdrawCommand(db, posting));
      if (late) return late;
      throw new NoAnswerError(`the command was not answered within ${String(timeoutMs)} ms`);
    },

    receive: (lease, signal) => this.#receive(lease, signal),
  };

  readonly maintenance: StoreMaintenance = {
    size: async () => this.#read(usedBytes),
    count: async () => this.#read(countSessions),
    principals: async () => this.#read(allPrincipals),
    purge: async (query) => {
      const living = await this.#livingNodes();
      const found = await this.#read((db) => endedSessions(db, { ...query, living }));
      const deleted = await Promise.all(
        found.map(async (ended) => this.#change(ended.id, "immediate", (db) => deleteSession(db, ended))),
      );
      while (await this.#writer.write("immediate", clearStep));
      while (await this.#writer.write("immediate", shrinkStep));
      return deleted.filter(Boolean).length;
    },
    forget: async () => {
      await this.#writer.write("immediate", (db) => forgetAged(db, this.#self.clock.now()));
      while (await this.#writer.write("immediate", (db) => forgetItems(db, this.#self.clock.now())));
    },
  };

  readonly ledger = createLedger({
    now: () => this.#self.clock.now(),
    read: async (work) => this.#read(work),
    write: async (work) => (this.#assertOpen(), this.#writer.write("immediate", work)),
  });

  readonly feed: Feed = {
    read: async (query) => this.#read((db) => db.snapshot(() => readFeed(db, query))),
    changes: (signal) => tailFeed(this.#changes, async () => this.#read(changeMark), signal),
  };

  readonly outbox = createOutbox({
    nodeId: () => this.nodeId,
    now: () => this.#self.clock.now(),
    read: async (work) => this.#read(work),
    write: async (work, urgency = "barrier") => (this.#assertOpen(), this.#writer.write(urgency, work)),
    onAdded: () => this.#changes.notify("", ["feed"]),
  });

  readonly close = async (): Promise<void> => {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  };

  async *#tail(id: string, from: number, signal: AbortSignal): AsyncGenerator<StoredEvent, void> {
    this.#assertOpen();
    const read = async (next: number, limit: number) =>
      this.#read((db) => {
        const events = readEvents(db, id, next, limit);
        return events.length > 0 || hasSession(db, id) ? events : undefined;
      });
    yield* tailLog(this.#changes, { sessionId: id, from, signal, read });
  }

  async *#receive(lease: Lease, signal: AbortSignal): AsyncGenerator<InboxItem, void> {
    this.#assertOpen();
    const { sessionId } = lease;
    const next = async (inHand: ReadonlySet<string>) =>
      this.#read((db) => {
        if (!isHeld(db, lease)) return undefined;
        const found = nextCommand(db, sessionId, this.#self.clock.now(), inHand);
        return found ? [found] : [];
      });
    const answer = async (id: string, reply: CommandReply): Promise<void> => {
      const text = JSON.stringify(reply);
      await this.#change(sessionId, "immediate", (db) => answerCommand(db, lease, id, text));
    };
    yield* receiveCommands(lease, { changes: this.#changes, signal, next, answer });
  }

  async #shutDown(): Promise<void> {
    this.#changes.close();
    await this.#writer.flush();
    await this.#access.close();
  }

  #assertOpen(): void {
    if (this.#closing) throw new Error(`node ${this.nodeId}: the store is closed`);
  }

  async #read<T>(work: (db: Connection) => T): Promise<T> {
    this.#assertOpen();
    return this.#access.use(work);
  }

  /** Writes, and wakes all readers that wait for the session. */
  async #change<T>(sessionId: string, urgency: Urgency, work: (db: Connection) => T): Promise<T> {
    this.#assertOpen();
    const result = await this.#writer.write(urgency, work);
    this.#changes.notify(sessionId);
    return result;
  }

  async #records(rows: readonly SessionRow[]): Promise<SessionRecord[]> {
    const isAlive = this.#liveness.createCheck();
    return Promise.all(rows.map(async (row) => this.#record(row, isAlive)));
  }

  async #record(row: SessionRow, isAlive = this.#liveness.createCheck()): Promise<SessionRecord> {
    const { nodeId } = row;
    const owner = nodeId === null ? undefined : { nodeId, alive: await isAlive({ ...row, nodeId }) };
    // Settles nothing for a living owner, who stores the state again. If the write fails, the columns stay unchanged.
    if (!row.isSettled && !owner?.alive)
      await this.#writer.write("immediate", (db) => settleUnreadable(db, row)).catch(() => undefined);
    return recordOf(row, owner);
  }

  async #servers(): ReturnType<SessionLeases["servers"]> {
    const all = await this.#read((db) => otherServers(db, this.nodeId));
    const isLiving = await Promise.all(all.map(async ({ pid, startedAt }) => this.#self.isRunning(pid, startedAt)));
    return all.filter((_, index) => isLiving[index]).map(({ pid, urls }) => ({ pid, urls }));
  }

  async #livingNodes(): Promise<string[]> {
    return this.#liveness.living(await this.#read(allNodes));
  }
}

function forgetAged(db: Connection, now: number): void {
  forgetEntries(db, now);
  forgetDeliveries(db, now);
}
