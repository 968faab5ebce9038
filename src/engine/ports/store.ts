import type { Command, CommandReply } from "../../domain/command.ts";
import { AppError, type Refusal } from "../../domain/error.ts";
import type { EventType, SessionEvent, StoredEvent } from "../../domain/event.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { Principal } from "../../domain/principal.ts";
import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import type { SessionState, SessionStatus } from "../../domain/session.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { Place } from "../../domain/place.ts";
import { type Unreadable, unreadableText } from "../../domain/unreadable.ts";
import type { Ledger, LedgerChange } from "./ledger.ts";
import type { Feed } from "./feed.ts";
import type { Lease } from "./lease.ts";
import type { StoreMachines } from "./machines.ts";
import type { NewDelivery, Outbox } from "./outbox.ts";

/** Contract of a store for sessions. */

export interface NewSession {
  id: string;
  principal: Principal;
  spec: SessionOptions;
  /** Policy of the operator at the creation; never changes. */
  policy?: SessionPolicy;
  state: SessionState;
  at: number;
  /** Unique per principal: a second `create` with the key returns the first session. */
  idempotencyKey?: string;
  /** Nodes that may run the session. Only with `machines`. */
  place?: Place;
}

export interface SessionRecord {
  readonly id: string;
  readonly principal: Principal;
  readonly spec: SessionOptions;
  /** Policy that the session began under; `undefined` if unreadable. */
  readonly policy: SessionPolicy | undefined;
  readonly state: SessionState;
  readonly title: string | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Number of changes of the row, for compare-and-set (`update`). */
  readonly rev: number;
  /** The node that owns the session, with `alive` from its lease; `undefined` without an owner. `name` only with `machines`. */
  readonly owner: { readonly nodeId: string; readonly alive: boolean; readonly name?: string | undefined } | undefined;
  /** Nodes that may run the session; absent for any. */
  readonly place?: Place | undefined;
  /** Set if the row cannot be read. `state` then says that nothing runs and that the last turn failed. */
  readonly unreadable?: Unreadable;
}

export interface Append {
  /** In order. Their ids follow `state.lastEventId` of the row, without a gap. */
  events: readonly SessionEvent[];
  at: number;
  state: SessionState;
  /** True if effects with a trace outside the server follow, so the write must survive a crash of the machine. */
  acted?: boolean;
  /** Changes of the ledger in the same transaction, and entries that the change relies on. */
  ledger?: readonly LedgerChange[];
  /** Messages to the operator's webhook, in the same transaction. */
  deliveries?: readonly NewDelivery[];
}

export interface SessionQuery {
  principal: Principal;
  statuses?: readonly SessionStatus[];
  cwd?: string;
  /** Only sessions changed at or after this time, ms since the epoch. */
  since?: number;
  /** Text to find in the title, the folder or the first prompt, case-insensitive. */
  text?: string;
  /** Position of the last session in the previous page. */
  before?: { readonly updatedAt: number; readonly id: string };
  limit: number;
}

/** Number of sessions by status. Statuses without a session are absent. */
export type SessionCounts = Partial<Readonly<Record<SessionStatus, number>>>;

export interface PurgeQuery {
  /** Only sessions last changed before, ms since the epoch. */
  before: number;
  statuses: readonly SessionStatus[];
  ids?: readonly string[];
  limit: number;
}

export interface InboxItem {
  readonly command: Command;
  /** Replies to the command. Fenced like `append`: the reply of an owner without a valid lease is dropped. */
  ack(reply: CommandReply): Promise<void>;
}

/** Thrown by a write if another lease (`epoch`) holds for the session. */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

/** Thrown by a write if the row, or an entry of the ledger, has changed since the read. Nothing is stored. */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
}

/** Reason why a session cannot be read or continued at present. `isLoss` as in the store's error. */
export class StoreTroubleError extends AppError {
  readonly isLoss: boolean;

  constructor({ code, message }: Refusal, sessionId: string, loss: boolean) {
    super(code, message, { sessionId });
    this.isLoss = loss;
  }
}

/** True if the store says that stored data may be missing, or may no longer be changed by this server (`isLoss`). */
export function isLoss(error: unknown): boolean {
  return error instanceof Error && "isLoss" in error && error.isLoss === true;
}

/**
 * True if the store cannot be reached at present (`isOutage`), as during a failover. A write may have been stored. The owner of
 * a session repeats its writes until its lease ends, and the work goes on meanwhile.
 */
export function isOutage(error: unknown): boolean {
  return error instanceof Error && "isOutage" in error && error.isOutage === true;
}

/** Returns `record`. Throws INTERNAL if `record` is unreadable. */
export function requireReadable<T extends Pick<SessionRecord, "id" | "unreadable">>(record: T): T {
  const { id: sessionId, unreadable } = record;
  if (unreadable) throw new AppError("INTERNAL", unreadableText(unreadable), { sessionId });
  return record;
}

/** Thrown if `send` gets no answer in time. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
}

/** Rows of sessions, without events. */
export interface SessionRows {
  /** Idempotent by id and by (principal, `idempotencyKey`): `created` is false if the session was there before. */
  create(session: NewSession): Promise<{ record: SessionRecord; created: boolean }>;
  get(id: string): Promise<SessionRecord | undefined>;
  /** Returns the session that has, or ever had, the transcript of Claude Code: by its id, or given by `/clear`. */
  holderOf(transcriptId: string): Promise<SessionRecord | undefined>;
  /** Returns the principal, which never changes. Far less work than `get`. */
  principalOf(id: string): Promise<Principal | undefined>;
  /** Compare-and-set of fields that the owner does not write. Throws `ConflictError`. */
  update(id: string, rev: number, patch: { title?: string; spec?: SessionOptions }): Promise<SessionRecord>;
  /** Newest first. An unreadable session has the status `error`. */
  list(query: SessionQuery): Promise<SessionRecord[]>;
  /** Returns a session as stored, readable or not. */
  raw(id: string): Promise<JsonObject | undefined>;
}

/** Events of sessions. Only the owner writes, all read. */
export interface SessionLog {
  /**
   * Stores state and events in one transaction; visible to readers only once durable. Throws `FencedError`, and `ConflictError`
   * if an entry in `ledger` has changed. With `machines`: rejects with an outage (`isOutage`) while the store cannot be reached,
   * and a repetition of an append that was stored all the same is a no-op.
   */
  append(lease: Lease, change: Append): Promise<void>;
  /**
   * Returns events with `id >= from`, in order, at most `limit`. With `types`, passes over all others unread. An unreadable
   * event is replaced by a notice of kind `data_loss`.
   */
  read(id: string, from: number, limit: number, types?: readonly EventType[]): Promise<StoredEvent[]>;
  /** Yields stored events, then each new event; no gap, no duplicates. Ends if `signal` aborts. */
  tail(id: string, from: number, signal: AbortSignal): AsyncIterable<StoredEvent>;
}

/** Living nodes, and the sessions owned by each. */
export interface SessionLeases {
  /**
   * Renews this node's lease. Without a renewal within `ttlMs`, its sessions go to the next node that claims them. Resolves with
   * true if the former lease had run out, so that others may have claimed its sessions; always false without `machines`.
   */
  heartbeat(ttlMs: number): Promise<boolean>;
  /**
   * Returns `undefined` if another living node owns the session, there is no session, or this node's lease has run out. Binds a
   * session placed by labels to this node, if this node has them. A node of this machine is dead once its process has exited,
   * any other only once its lease has run out.
   */
  claim(id: string): Promise<Lease | undefined>;
  release(lease: Lease): Promise<void>;
  /**
   * Returns sessions recorded as at work without a living owner, of all principals, at most `limit`, readable ones only. With
   * `machines`: those whose place this node has, and those whose place no living node has and that do not wait for it yet.
   */
  abandoned(limit: number): Promise<SessionRecord[]>;
  /** Returns sessions with running or imminent work and a living owner on this machine, of all principals. */
  atWork(): Promise<SessionRecord[]>;
  /** HTTP addresses of the servers of this store, those of the last day included. */
  urls(): Promise<string[]>;
  /** Processes of this machine, except this, that run sessions of this store, frozen processes included; `urls` as above. */
  servers(): Promise<readonly { readonly pid: number; readonly urls: readonly string[] }[]>;
}

/** Commands on their way to the owners of sessions. */
export interface SessionInbox {
  /** Sends to the owner, on any node; idempotent by command id. Throws `NoAnswerError`. */
  send(id: string, command: Command, timeoutMs: number): Promise<CommandReply>;
  /** Yields commands sent to the session, for the owner to answer. */
  receive(lease: Lease, signal: AbortSignal): AsyncIterable<InboxItem>;
}

/** The store as a whole, over all principals, and deletion of sessions. */
export interface StoreMaintenance {
  /** Size of the store, bytes. */
  size(): Promise<number>;
  /** Number of sessions by recorded status, of all principals. */
  count(): Promise<SessionCounts>;
  /** Returns the principals that have sessions. */
  principals(): Promise<Principal[]>;
  /** Deletes matching sessions without a living owner, the oldest first; returns the number. */
  purge(query: PurgeQuery): Promise<number>;
  /** Deletes what is past its time beside sessions: in the ledger, the feed, subscriptions and deliveries. */
  forget(): Promise<void>;
}

/**
 * An opened store, which is one node. All storage engines pass the suite in test/kit/store/suite.ts; reasons in
 * docs/decisions.md. The backend and its ports can be spread, and no method needs `this`, so a wrapper names only its
 * changes, as in `{ ...store, log: { ...store.log, append } }`.
 */
export interface SessionBackend {
  readonly nodeId: string;
  readonly rows: SessionRows;
  readonly log: SessionLog;
  readonly leases: SessionLeases;
  readonly inbox: SessionInbox;
  readonly maintenance: StoreMaintenance;
  readonly ledger: Ledger;
  readonly feed: Feed;
  readonly outbox: Outbox;
  /** Present if several machines share the store. */
  readonly machines?: StoreMachines;
  /** Keeps this node's sessions until the lease runs out. The engine releases them, because only it knows what still runs. */
  readonly close: () => Promise<void>;
}

/** Refusal of callers while the log of a session cannot be written. */

export function logWriteRefusal(error: unknown): Refusal {
  const reason = messageOf(error).replace(/[.\s]*$/, ".");
  const lost = isLoss(error) ? "" : "; everything reported before is stored";
  const message = `The session's log cannot be written: ${reason} Its turn was stopped${lost}.`;
  return { code: "INTERNAL", message };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
