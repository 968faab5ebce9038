import type { Passed, ApproverName } from "../domain/approvals/answer-source.ts";
import type { Delivered, WhenBusy } from "../domain/command.ts";
import type { ControlRequest } from "../domain/control.ts";
import type { StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { PermissionUpdate } from "../domain/permission.ts";
import type { Caller, Principal } from "../domain/principal.ts";
import type { AttachmentSource, TurnLimits } from "../domain/prompt.ts";
import type { Operator } from "./policy/operator.ts";
import type { SessionRecord, SessionQuery, WorkTree } from "./ports.ts";

/**
 * The operations that every surface calls. All throw AppError; a session of another principal is SESSION_NOT_FOUND. Operations
 * that take options of a session, or approve tool uses, take the whole `Caller`, because its scopes limit them.
 */
export interface Engine {
  /** The engine as this caller may use it: without the scope run, reading takes over nothing that a dead server has left. */
  forCaller(caller: Pick<Caller, "scopes">): Engine;
  /** The engine as the client of one connection uses it. */
  forConnection(terms: ConnectionTerms): Engine;
  /** Throws PERMISSION_DENIED where nothing may be changed from here: in a server inside a session. */
  checkMayConfigure(): Promise<void>;
  /** Makes a session in which nothing runs yet. */
  create(caller: Caller, options: SessionOptions): Promise<Opened>;
  /** Starts a session with its first prompt and returns at once; `cursor` is where its events begin. */
  open(caller: Caller, request: OpenSessionRequest): Promise<Begun>;
  /**
   * Starts a session that begins with all that was said in another, or with what was said up to `resumeAt`. The other
   * stays as it is. Throws SESSION_BUSY while a turn runs there.
   */
  fork(caller: Caller, sessionId: string, request: PromptRequest): Promise<Begun>;
  /**
   * Goes on with a session of Claude Code that no server of this store has seen, or forks it. Throws SESSION_NOT_FOUND
   * when Claude Code has none of this id, SESSION_BUSY when another process has it open.
   */
  adopt(caller: Caller, request: AdoptRequest): Promise<Begun>;
  /** The next prompt. Throws SESSION_BUSY while a turn runs (see whenBusy), CANCELLED when the session was cancelled. */
  prompt(principal: Principal, sessionId: string, request: PromptRequest): Promise<{ cursor: number }>;
  /**
   * Throws PERMISSION_REQUEST_NOT_FOUND, naming the first answer when there was one, and PERMISSION_DENIED where the answer
   * does not count: who allows needs the scope approve, and has to be on the approval chain.
   */
  answer(caller: Caller, sessionId: string, request: AnswerRequest): Promise<{ cursor: number } & Bounded>;
  /** Whom the request is with cannot or will not answer it: it goes on to the next. Where it is with another, nothing happens. */
  pass(principal: Principal, sessionId: string, request: PassRequest): Promise<void>;
  /** Keeps the request open for more time, with whom it is. Throws as `answer` does. */
  extend(principal: Principal, sessionId: string, requestId: string): Promise<void>;
  /** Keeps what was filled in of a form that another one follows; with `denial` the request is denied from here on. */
  fill(principal: Principal, sessionId: string, request: FillRequest): Promise<void>;
  /** Forgets an answer that was remembered, by its rule; without one all of them. Resolves with what is forgotten. */
  revoke(principal: Principal, sessionId: string, request: { rule?: string; by: string }): Promise<string[]>;
  /** Says that these asks have been shown to someone who can answer: their default time runs from the first time. */
  delivered(principal: Principal, sessionId: string, requests: Delivered[]): Promise<void>;
  /**
   * Ends the running turn; the session stays. A session with nothing running is left as it is. With `promptId` only the turn
   * of that prompt; where it waits it is dropped, and held prompts stay held.
   */
  interrupt(principal: Principal, sessionId: string, by: string, promptId?: string): Promise<{ cursor: number }>;
  /**
   * The client that sent the prompt is gone: its turn is interrupted, or the prompt is dropped where it waits. Other prompts of
   * the session run as if nothing had happened.
   */
  clientGone(principal: Principal, sessionId: string, promptId: string): Promise<void>;
  /** Ends the session permanently. A closed session stays as it is. */
  cancel(principal: Principal, sessionId: string, request: { by: string; reason?: string }): Promise<void>;
  /** Closes a session permanently; a running turn is interrupted first. */
  close(principal: Principal, sessionId: string, by: string): Promise<void>;
  /** Runs, or drops, the prompts that wait since something was stopped or lost. */
  queue(principal: Principal, sessionId: string, request: { do: "release" | "drop"; by: string }): Promise<void>;
  /** Asks Claude Code itself; resolves with its answer. Throws INVALID_ARGUMENT when it refuses. */
  control(caller: Caller, sessionId: string, request: ControlRequest, by: string): Promise<JsonObject>;
  /** How many sessions wait for a slot for their Claude Code before this one; undefined when it does not wait. */
  waitingBefore(sessionId: string): Promise<number | undefined>;
  /** The number of sessions of this server in which a turn runs, prompts wait or background work goes on. */
  atWork(): number;
  /** What is being written just now, if this server runs the session and was asked to tell (includePartialMessages). */
  partial(sessionId: string): Promise<string>;
  /** How the session's folder stands in git; undefined where it is in no repository. */
  workTree(principal: Principal, sessionId: string): Promise<WorkTree | undefined>;
  rename(principal: Principal, sessionId: string, title: string): Promise<void>;
  /** Deletes what is kept of the session here; Claude Code's own transcript stays. Throws SESSION_BUSY while a turn runs. */
  delete(principal: Principal, sessionId: string, by: string): Promise<void>;
  get(principal: Principal, sessionId: string): Promise<SessionRecord>;
  list(query: SessionQuery): Promise<SessionRecord[]>;
  /** Sessions that worked on unattended and were not attended to since, the newest first; the caller attends to them by this. */
  takeUnattended(principal: Principal): Promise<SessionRecord[]>;
  /** Events with `id >= from`, in order. */
  read(principal: Principal, sessionId: string, from: number, limit: number): Promise<StoredEvent[]>;
  /** Resolves when one of the sessions has what was waited for, at `timeoutMs`, or when `signal` aborts. */
  wait(principal: Principal, request: WaitRequest): Promise<{ woke: string | undefined }>;
  /**
   * The gate was closed: sessions that this server runs and that it would give no other prompt begin no further turn. What
   * waits in them is held, and their processes end with the running turn. Resolves with how many there are.
   */
  enforceGate(): Promise<number>;
  /** Begins nothing more. Turns that run have `graceMs` to end, then they are recorded as interrupted by shutdown and stopped. */
  stop(graceMs: number): Promise<void>;
  /** Ends all: running turns are recorded as interrupted by shutdown first, then their processes are stopped. */
  drain(): Promise<void>;
}

/** The terms of one connection: what its client starts and continues, it does under these. */
export interface ConnectionTerms extends Operator {
  /** Slots for processes are shared out between connections by it. */
  readonly id: string;
  /** Told of each session that the client starts, reads, waits on or sends something to. */
  readonly named?: ((sessionId: string) => void) | undefined;
}

/** What of a request was left out, a sentence each: it would have let more run unasked than the caller may approve. */
interface Bounded {
  withheld: readonly string[];
}

interface Opened extends Bounded {
  sessionId: string;
}

interface Begun extends Opened {
  cursor: number;
}

export interface OpenSessionRequest {
  options: SessionOptions;
  /** Options of the operator's choice, which hold whatever the caller may approve; they go before the others. */
  fromOperator?: Pick<SessionOptions, "allowedTools">;
  prompt: Pick<PromptRequest, "text" | "attachments" | "idempotencyKey" | "limits" | "via">;
}

export interface PromptRequest {
  text: string;
  attachments?: AttachmentSource[];
  idempotencyKey?: string;
  /** Default: reject. */
  whenBusy?: WhenBusy;
  limits?: TurnLimits;
  /** Forget what came after this message of the conversation. */
  resumeAt?: string;
  /** The tool it came through. */
  via?: string;
}

export interface AdoptRequest {
  sessionId: string;
  /** Without a folder: the one that the session was in. */
  options: Omit<SessionOptions, "cwd"> & { cwd?: string };
  fork: boolean;
  prompt: PromptRequest;
}

export interface AnswerRequest {
  requestId: string;
  /** `allow_for_session` also allows what Claude Code suggests, or else the tool, until the session ends. */
  decision: "allow" | "deny" | "allow_for_session";
  /** Where it was given. An allow counts there only for a person, or for a program with the scope decide; else as the caller's. */
  by: ApproverName;
  /** A person has given it, as far as the server can tell: they signed in at the console, or the client is attended. */
  asPerson?: boolean;
  denyMessage?: string;
  /** With deny: end the turn as well. */
  interrupt?: boolean;
  updatedInput?: JsonObject;
  updatedPermissions?: PermissionUpdate[];
}

export interface PassRequest {
  requestId: string;
  from: ApproverName;
  why: Exclude<Passed, "time">;
}

export interface FillRequest {
  requestId: string;
  from: ApproverName;
  filled: JsonObject;
  /** What Claude Code is told where no reason comes. */
  denial?: string;
}

/**
 * `news`: the turn ended, or a request was opened, at or after the cursor. `end`: no turn runs. Both return at once if nothing
 * runs in any of the sessions; otherwise an idle session ends the wait only by an event at or after its cursor. `event`: any
 * new event.
 */
export type WaitUntil = "news" | "event" | "end";

export interface WaitRequest {
  sessions: { sessionId: string; cursor: number }[];
  until: WaitUntil;
  timeoutMs: number;
  signal: AbortSignal;
}
