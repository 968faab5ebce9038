import type { Command, CommandReply } from "../../domain/command.ts";
import { AppError, type Refusal } from "../../domain/error.ts";
import type { EventType, SessionEvent, StoredEvent } from "../../domain/event.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { Principal } from "../../domain/principal.ts";
import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import type { SessionState, SessionStatus } from "../../domain/session.ts";
import type { JsonObject } from "../../domain/json.ts";
import { type Unreadable, unreadableText } from "../../domain/unreadable.ts";

/** Somewhere to keep sessions. */

export interface NewSession {
  id: string;
  principal: Principal;
  spec: SessionOptions;
  /** What the operator of the server that makes it allows; it stays as it is. */
  policy?: SessionPolicy;
  state: SessionState;
  at: number;
  /** Unique per principal: the second create with it gives back the first session. */
  idempotencyKey?: string;
}

export interface SessionRecord {
  readonly id: string;
  readonly principal: Principal;
  readonly spec: SessionOptions;
  /** That under which the session began; undefined where it cannot be read. */
  readonly policy: SessionPolicy | undefined;
  readonly state: SessionState;
  readonly title: string | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Counts every change of the row, for compare and set. */
  readonly rev: number;
  /** The node that owns the session and whether its lease is alive; undefined without an owner. */
  readonly owner: { readonly nodeId: string; readonly alive: boolean } | undefined;
  /** Given when its row cannot be read: the state says then that nothing runs and that the last turn failed. */
  readonly unreadable?: Unreadable;
}

/** The right to write a session. `epoch` grows with each claim: a writer with an older one is fenced. */
export interface Lease {
  readonly sessionId: string;
  readonly nodeId: string;
  readonly epoch: number;
  /** True when the claim took the session from a node whose lease had run out. */
  readonly tookOver: boolean;
}

export interface Append {
  /** In order; their ids go on from `state.lastEventId` of the row, without a gap. */
  events: readonly SessionEvent[];
  at: number;
  state: SessionState;
  /** More is done because of it than to answer a caller: it must stand, whatever becomes of the machine. */
  acted?: boolean;
}

export interface SessionQuery {
  principal: Principal;
  statuses?: readonly SessionStatus[];
  cwd?: string;
  /** Only sessions changed at or after this time, ms since the epoch. */
  since?: number;
  /** Found in the title, the folder or the first prompt, whatever the case. */
  text?: string;
  /** Where the page before ended. */
  before?: { readonly updatedAt: number; readonly id: string };
  limit: number;
}

/** A status that no session has is missing. */
export type SessionCounts = Partial<Readonly<Record<SessionStatus, number>>>;

export interface PurgeQuery {
  /** Only sessions that last changed before this time, ms since the epoch. */
  before: number;
  statuses: readonly SessionStatus[];
  /** Only these sessions. */
  ids?: readonly string[];
  limit: number;
}

export interface InboxItem {
  readonly command: Command;
  /** Fenced like an append: the answer of an owner that lost its lease is dropped. */
  ack(reply: CommandReply): Promise<void>;
}

/** Thrown by a write whose lease is no longer the session's. */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

/** Thrown by `update` when the row has changed since it was read. */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
}

/** Why a session cannot be told of, or worked in, at present; `isLoss` as the store says it. */
export class StoreTroubleError extends AppError {
  readonly isLoss: boolean;

  constructor({ code, message }: Refusal, sessionId: string, loss: boolean) {
    super(code, message, { sessionId });
    this.isLoss = loss;
  }
}

/** Whether the store says that what was stored before may be missing, or may no longer be changed by this server. */
export function isLoss(error: unknown): boolean {
  return error instanceof Error && "isLoss" in error && error.isLoss === true;
}

/** The record, for what needs more of it than its id. Throws when the row cannot be read. */
export function readable<T extends Pick<SessionRecord, "id" | "unreadable">>(record: T): T {
  const { id: sessionId, unreadable } = record;
  if (unreadable) throw new AppError("INTERNAL", unreadableText(unreadable), { sessionId });
  return record;
}

/** No answer to a sent command came in time. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
}

/** What stands about sessions, but for what happened in them. */
export interface SessionRows {
  /** Idempotent by id and by (principal, idempotencyKey): `created` is false when the session was there before. */
  create(session: NewSession): Promise<{ record: SessionRecord; created: boolean }>;
  get(id: string): Promise<SessionRecord | undefined>;
  /** The session that has, or ever had, this transcript of Claude Code: the one of this id, or one to which `/clear` gave it. */
  holderOf(transcriptId: string): Promise<SessionRecord | undefined>;
  /** Whose session it is, which never changes: far less work than all of it. */
  principalOf(id: string): Promise<Principal | undefined>;
  /** Compare and set of what is not the owner's to write. Throws ConflictError. */
  update(id: string, rev: number, patch: { title?: string; spec?: SessionOptions }): Promise<SessionRecord>;
  /** Newest first. One that cannot be read has the status `error`. */
  list(query: SessionQuery): Promise<SessionRecord[]>;
  /** A session as it is stored, whether it can be read or not. */
  raw(id: string): Promise<JsonObject | undefined>;
}

/** The events of sessions. Only the owner writes, all read. */
export interface SessionLog {
  /** State and events in one transaction; visible to readers only when durable. Throws FencedError. */
  append(lease: Lease, change: Append): Promise<void>;
  /**
   * Events with `id >= from`, in order, at most `limit`; of these `types` only: the others are passed over unread. One that cannot be
   * read is a notice of kind `data_loss` in its place.
   */
  read(id: string, from: number, limit: number, types?: readonly EventType[]): Promise<StoredEvent[]>;
  /** Those that are there, then each as it comes; no gap, none twice. Ends when `signal` aborts. */
  tail(id: string, from: number, signal: AbortSignal): AsyncIterable<StoredEvent>;
}

/** Which nodes live, and which of them owns what. */
export interface SessionLeases {
  /** Renews this node's lease. A node that does not do so within `ttlMs` loses its sessions to the next node that claims them. */
  heartbeat(ttlMs: number): Promise<void>;
  /** Undefined when another living node owns it, it does not exist, or this node's own lease has run out. */
  claim(id: string): Promise<Lease | undefined>;
  release(lease: Lease): Promise<void>;
  /** Sessions recorded as at work whose owner is dead or gone, of all principals, at most `limit`; none that cannot be read. */
  abandoned(limit: number): Promise<SessionRecord[]>;
  /** Sessions in which something runs or is about to, and whose owner lives, of all principals. */
  atWork(): Promise<SessionRecord[]>;
  /** Where the servers of this store are reached over HTTP, those of the last day included. */
  urls(): Promise<string[]>;
  /** Other processes of this machine that run sessions of this store, also frozen ones; `urls` as above. */
  servers(): Promise<readonly { readonly pid: number; readonly urls: readonly string[] }[]>;
}

/** Commands on their way to the owners of sessions. */
export interface SessionInbox {
  /** To the owner, wherever it is; idempotent by command id. Throws NoAnswerError. */
  send(id: string, command: Command, timeoutMs: number): Promise<CommandReply>;
  /** What is sent to a session, for its owner to answer. */
  receive(lease: Lease, signal: AbortSignal): AsyncIterable<InboxItem>;
}

/** What keeps the store from growing, and tells how it stands. */
export interface StoreMaintenance {
  /** Bytes that the store takes up. */
  size(): Promise<number>;
  /** How many sessions there are, by the status that is recorded, of all principals. */
  count(): Promise<SessionCounts>;
  /** Deletes sessions without a living owner that match; the oldest first; returns how many. */
  purge(query: PurgeQuery): Promise<number>;
}

/**
 * Where sessions live. One instance is one node. All engines pass the suite in test/support/store/suite.ts; reasons in
 * docs/decisions.md. It and its five ports can be spread, and no method needs a `this`: what wraps a store names what it changes and
 * forwards nothing by hand, as in `{ ...store, log: { ...store.log, append } }`.
 */
export interface SessionBackend {
  readonly nodeId: string;
  readonly rows: SessionRows;
  readonly log: SessionLog;
  readonly leases: SessionLeases;
  readonly inbox: SessionInbox;
  readonly maintenance: StoreMaintenance;
  /** What this node owns stays its own until its lease runs out: releasing is the engine's, which knows what still runs. */
  readonly close: () => Promise<void>;
}

/** What callers are told while the log of a session cannot be written. */

export function cannotBeWritten(error: unknown): Refusal {
  const reason = messageOf(error).replace(/[.\s]*$/, ".");
  const lost = isLoss(error) ? "" : "; everything reported before is stored";
  const message = `The session's log cannot be written: ${reason} Its turn was stopped${lost}.`;
  return { code: "INTERNAL", message };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
