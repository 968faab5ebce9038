import type { Command, CommandReply } from "../domain/command.ts";
import type { ControlRequest } from "../domain/control.ts";
import type { BackgroundTask, EventType, NoticeKind, SessionEvent, StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { Ask, Decision } from "../domain/permission.ts";
import type { Principal } from "../domain/principal.ts";
import type { Attachment, AttachmentSource } from "../domain/prompt.ts";
import type { Identity, Origin, SessionState, SessionStatus } from "../domain/session.ts";
import type { AgentResult } from "../domain/turn.ts";

/**
 * What the engine needs from the outside: somebody to run Claude Code (claude/), somewhere to keep sessions (store/),
 * a clock and a log. The engine owns these contracts; app.ts plugs the implementations in.
 */

// --- Claude Code ---------------------------------------------------------------------------------------------------

/** What a process of Claude Code tells the engine, in the engine's words. */
export type AgentSignal =
  /** There is a place for the process: it is started now. */
  | { type: "admitted" }
  /** `missing` are the prompts of `rerunOf` that Claude Code has not written down: they never ran. */
  | { type: "started"; pid?: number; startedAt?: string; resumed: boolean; missing?: readonly string[] }
  /** Claude Code answered its initialize: the process takes turns. */
  | { type: "ready" }
  /** A sign of life without news. */
  | { type: "alive" }
  | { type: "reported"; model?: string; permissionMode?: string; transcriptId?: string }
  /** Claude Code's own busy flag. Idle is the end of a turn: the first `result` is not. `id` is unique per frame. */
  | { type: "busy"; id: string }
  | { type: "idle" }
  /** A message for the log, trimmed of file bodies. `toolUseId` is the last tool call in it. */
  | { type: "message"; message: JsonObject; toolUseId?: string }
  | { type: "result"; result: AgentResult; message: JsonObject }
  /** The cost so far, cumulative over the session; `atStart` before the process has taken a prompt. */
  | { type: "spent"; costUsdTotal: number; atStart: boolean }
  /** Claude Code has finished with, or refused, the prompt of this id. */
  | { type: "prompt-settled"; promptId: string }
  | { type: "background"; tasks: BackgroundTask[] }
  | { type: "asked"; ask: Ask }
  /** Claude Code no longer waits for this answer. */
  | { type: "withdrawn"; requestId: string }
  | { type: "notice"; kind: NoticeKind; message: string; details?: JsonObject }
  /** Always the last signal of a process, and always sent. `error` says in one line why it could not run. */
  | { type: "exited"; code: number | null; signal: string | null; error?: string };

/** One running Claude Code. But for `control`, none of these methods throws or blocks; what comes of them arrives as signals. */
export interface AgentProcess {
  push(prompt: { id: string; text: string; attachments: readonly Attachment[] }): void;
  /** Resolves with Claude Code's answer; rejects with an AppError when it refuses, or is gone before it has answered. */
  control(request: ControlRequest): Promise<JsonObject>;
  answer(requestId: string, decision: Decision): void;
  interrupt(): void;
  /** The stop recipe: interrupt, end of input, close, and SIGKILL to the whole tree at the end of its bounds. */
  stop(): void;
  /** SIGKILL to the whole tree, now. */
  kill(): void;
}

export interface AgentStart {
  sessionId: string;
  principal: Principal;
  options: SessionOptions;
  /** The id under which Claude Code keeps the session; another than `sessionId` once it was cleared. */
  transcriptId: string;
  /** No process has run for this session before: there is nothing to resume. */
  first: boolean;
  /** Another session of Claude Code that this one begins with. */
  origin?: Origin;
  /** Forget what came after this message. */
  resumeAt?: string;
  /** The prompts of the turn that the last process was lost in: go on with it; what it had finished is not done again. */
  rerunOf?: readonly string[];
  /** Put into the environment of all that the process starts, so that it can be found again. */
  mark: string;
  /** Nothing is started before; rejects when it is to be started no more. */
  admitted: Promise<void>;
  /** Whether one more process may be kept in reserve, beside those that run. */
  hasRoom: () => Promise<boolean>;
  onSignal: (signal: AgentSignal) => void;
  /** The end of what is being written just now, "" when it is whole: told live only, and in no log. */
  onPartial: (text: string) => void;
}

/** What is known of a process whose owner died. `startedAt` is in the system's own unit; it tells a reused pid apart. */
export interface Leftover {
  mark: string;
  pid?: number;
  startedAt?: string;
}

/** A session that Claude Code has a transcript of. */
export interface FoundSession {
  /** The folder it was in last. */
  cwd: string | undefined;
}

/** A process that has a session open, and how it was started, in Claude Code's word. */
export interface OpenIn {
  pid: number;
  how: string;
}

/** How a folder stands against its last commit in git. */
export interface WorkTree extends JsonObject {
  commit: string;
  diff: string;
  /** New files, relative to the folder. */
  untracked: string[];
}

/** Processes that were started ahead of the sessions that will have them. */
export interface Spares {
  /** How many of them no session has yet. */
  readonly parked: number;
  /** Ends those. */
  retire(): Promise<void>;
}

export interface AgentRuntime {
  /**
   * Refuses what can be known to fail before a process is started: AppError INVALID_ARGUMENT naming the field, and
   * PERMISSION_DENIED for a principal of whom it is not known what his sessions may use; so does all else that takes one.
   * Resolves with the options; where the principal is confined to folders, their paths as they really are.
   */
  check(principal: Principal, options: SessionOptions): Promise<SessionOptions>;
  /** The id that a new session will have, known before its process starts (a spare process owns its id). */
  reserve(principal: Principal, options: SessionOptions): Promise<string>;
  readonly spares: Spares;
  /** Reads the images that go with a prompt. Refuses what is none, too large, or outside the folders: INVALID_ARGUMENT. */
  attach(
    principal: Principal,
    sources: readonly AttachmentSource[],
    options: Pick<SessionOptions, "cwd">,
  ): Promise<Attachment[]>;
  /** Undefined where the folder is in no repository. Refuses a folder as `check` does. */
  workTree(principal: Principal, options: Pick<SessionOptions, "cwd" | "env">): Promise<WorkTree | undefined>;
  /** What Claude Code itself knows of a session, of those that a session with these options could go on with. */
  find(
    principal: Principal,
    sessionId: string,
    options: Pick<SessionOptions, "env">,
  ): Promise<FoundSession | undefined>;
  /** The process that has the session open just now, in a terminal or wherever else. */
  openIn(principal: Principal, sessionId: string, options: Pick<SessionOptions, "env">): Promise<OpenIn | undefined>;
  /** Starts Claude Code for the session: new, or resumed where a transcript of that id exists. */
  start(request: AgentStart): AgentProcess;
  /** Whose configuration and money a session with these options would use. */
  identify(principal: Principal, options: SessionOptions): Promise<Identity>;
  /** Ends a process that a dead owner left, with all it started; resolves when it is gone. */
  endLeftover(leftover: Leftover): Promise<void>;
  /** Resolves when no process of this runtime is left. Whoever calls it has stopped them; stopping has its bounds. */
  drain(): Promise<void>;
}

// --- Store ---------------------------------------------------------------------------------------------------------

export interface NewSession {
  id: string;
  principal: Principal;
  spec: SessionOptions;
  state: SessionState;
  at: number;
  /** Unique per principal: the second create with it gives back the first session. */
  idempotencyKey?: string;
}

export interface SessionRecord {
  readonly id: string;
  readonly principal: Principal;
  readonly spec: SessionOptions;
  readonly state: SessionState;
  readonly title: string | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Counts every change of the row, for compare and set. */
  readonly rev: number;
  /** The node that owns the session and whether its lease is alive; undefined when nobody does. */
  readonly owner: { readonly nodeId: string; readonly alive: boolean } | undefined;
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

/** Nobody answered a sent command in time. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
}

/**
 * Where sessions live: rows, logs, leases and an inbox per session. One instance is one node. All engines pass the
 * suite in test/unit/store-suite.ts; reasons in docs/decisions.md.
 */
export interface SessionBackend {
  readonly nodeId: string;
  /** Renews this node's lease. A node that does not do so within `ttlMs` loses its sessions to whoever claims them. */
  heartbeat(ttlMs: number): Promise<void>;
  /** Idempotent by id and by (principal, idempotencyKey): `created` is false when the session was there before. */
  create(session: NewSession): Promise<{ record: SessionRecord; created: boolean }>;
  get(id: string): Promise<SessionRecord | undefined>;
  /** Whose session it is, which never changes: far less work than all of it. */
  principalOf(id: string): Promise<Principal | undefined>;
  /** Compare and set of what is not the owner's to write. Throws ConflictError. */
  update(id: string, rev: number, patch: { title?: string; spec?: SessionOptions }): Promise<SessionRecord>;
  /** Newest first. */
  list(query: SessionQuery): Promise<SessionRecord[]>;
  /** Undefined when another living node owns it, it does not exist, or this node's own lease has run out. */
  claim(id: string): Promise<Lease | undefined>;
  release(lease: Lease): Promise<void>;
  /** State and events in one transaction; visible to readers only when durable. Throws FencedError. */
  append(lease: Lease, change: Append): Promise<void>;
  /** Events with `id >= from`, in order, at most `limit`; of these `types` only: the others are passed over unread. */
  read(id: string, from: number, limit: number, types?: readonly EventType[]): Promise<StoredEvent[]>;
  /** Those that are there, then each as it comes; no gap, none twice. Ends when `signal` aborts. */
  tail(id: string, from: number, signal: AbortSignal): AsyncIterable<StoredEvent>;
  /** To the owner, wherever it is; idempotent by command id. Throws NoAnswerError. */
  send(id: string, command: Command, timeoutMs: number): Promise<CommandReply>;
  inbox(lease: Lease, signal: AbortSignal): AsyncIterable<InboxItem>;
  /** Bytes that the store takes up. */
  size(): Promise<number>;
  /** Sessions recorded as at work whose owner is dead or gone, of all principals, at most `limit`. */
  abandoned(limit: number): Promise<SessionRecord[]>;
  /** Sessions in which something runs or is about to, and whose owner lives, of all principals. */
  atWork(): Promise<SessionRecord[]>;
  /** How many sessions there are, by the status that is recorded, of all principals. */
  count(): Promise<SessionCounts>;
  /** Deletes sessions without a living owner that match; the oldest first; returns how many. */
  purge(query: PurgeQuery): Promise<number>;
  close(): Promise<void>;
}

// --- Time and words ------------------------------------------------------------------------------------------------

export interface Clock {
  /** ms since the epoch. */
  now(): number;
  /** Calls back once, no earlier than `at`; the returned function calls it off. Never keeps the process alive. */
  at(time: number, callback: () => void): () => void;
}

export interface Logger {
  debug(message: string, fields?: JsonObject): void;
  info(message: string, fields?: JsonObject): void;
  warn(message: string, fields?: JsonObject): void;
  error(message: string, fields?: JsonObject): void;
}
