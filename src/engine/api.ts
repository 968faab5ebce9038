import type { PassReason, ApproverName } from "../domain/approvals/answer-source.ts";
import type { Budget } from "../domain/budget.ts";
import type { Delivered, WhenBusy } from "../domain/command.ts";
import type { ControlRequest } from "../domain/control.ts";
import type { StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { PermissionUpdate } from "../domain/permission.ts";
import type { Account, AccountWindows, PlanReserve } from "../domain/plan.ts";
import type { Caller, Principal } from "../domain/principal.ts";
import type { AttachmentSource, TurnLimits } from "../domain/prompt.ts";
import type { Operator } from "./policy/operator.ts";
import type { PackReport, SessionRecord, SessionQuery, WorkTree } from "./ports.ts";
import type { Verify } from "../domain/verification.ts";

/**
 * Operations for every surface. All throw `AppError`; a session of another principal is SESSION_NOT_FOUND. Operations that take
 * session options, or approve tool uses, take the whole `Caller`, because its scopes limit them.
 */
export interface Engine {
  /** Returns the engine for a caller. Without the scope run, reading takes over no session of a dead server. */
  forCaller(caller: Pick<Caller, "scopes">): Engine;
  /** Returns the engine for the client of one connection. */
  forConnection(terms: ConnectionTerms): Engine;
  /** Throws PERMISSION_DENIED in a server inside a session, which may change nothing. */
  checkMayConfigure(): Promise<void>;
  /** Creates a session in which nothing runs yet. */
  create(caller: Caller, options: SessionOptions): Promise<CreatedSession>;
  /** Starts a session with its first prompt and returns at once; `cursor` is the position of its first event. */
  open(caller: Caller, request: OpenSessionRequest): Promise<StartedSession>;
  /**
   * Starts a session with a copy of the conversation of another, up to `resumeAt` if given. The original does not change.
   * Throws SESSION_BUSY while a turn runs there.
   */
  fork(caller: Caller, sessionId: string, request: PromptRequest): Promise<StartedSession>;
  /**
   * Goes on with a session of Claude Code that no server of this store has seen, or forks it. Throws SESSION_NOT_FOUND if
   * Claude Code has no session of this id, SESSION_BUSY if another process has it open.
   */
  adopt(caller: Caller, request: AdoptRequest): Promise<StartedSession>;
  /** Sends the next prompt. Throws SESSION_BUSY while a turn runs (see `whenBusy`), CANCELLED if the session was cancelled. */
  prompt(principal: Principal, sessionId: string, request: PromptRequest): Promise<{ cursor: number }>;
  /**
   * Runs commands of a verification as a turn without a prompt. Throws INVALID_ARGUMENT if neither the request nor the session
   * has any, SESSION_BUSY while a turn runs.
   */
  verify(principal: Principal, sessionId: string, request: VerifyRequest): Promise<{ cursor: number }>;
  /**
   * Sends the request again that the API refused at a limit of the plan, as a turn of the refused prompt. Throws
   * INVALID_ARGUMENT unless the last turn ended so, SESSION_BUSY while a turn runs or before the reset.
   */
  continueTurn(principal: Principal, sessionId: string, request: ContinueRequest): Promise<{ cursor: number }>;
  /** Returns the windows of the session's account, and its budgets. */
  use(principal: Principal, sessionId: string): Promise<SessionUse>;
  /**
   * Throws PERMISSION_REQUEST_NOT_FOUND, naming the first answer if there was one, and PERMISSION_DENIED for an answer that
   * does not count: to allow takes the scope approve, and a place on the approval chain.
   */
  answer(caller: Caller, sessionId: string, request: AnswerRequest): Promise<{ cursor: number } & WithWithheld>;
  /** Passes the request on, because `from` cannot or will not answer. A no-op if another approver has the request. */
  pass(principal: Principal, sessionId: string, request: PassRequest): Promise<void>;
  /** Keeps the request open for more time, with its present approver. Throws like `answer`. */
  extend(principal: Principal, sessionId: string, requestId: string): Promise<void>;
  /** Keeps the content of a form that a second form follows. With `denial` the request is denied from here on. */
  fill(principal: Principal, sessionId: string, request: FillRequest): Promise<void>;
  /** Forgets the remembered answers of `rule`, or all without `rule`. Resolves with the forgotten rules. */
  revoke(principal: Principal, sessionId: string, request: { rule?: string; by: string }): Promise<string[]>;
  /** Marks requests as shown to an approver. Their default time limit runs from the first showing. */
  delivered(principal: Principal, sessionId: string, requests: Delivered[]): Promise<void>;
  /**
   * Ends the running turn; the session stays. A no-op if nothing runs. With `promptId`, ends only the turn of the prompt, or
   * drops the prompt if it waits; held prompts stay held.
   */
  interrupt(principal: Principal, sessionId: string, by: string, promptId?: string): Promise<{ cursor: number }>;
  /** Interrupts the turn of a prompt after its client has gone, or drops a waiting prompt. Other prompts run undisturbed. */
  clientGone(principal: Principal, sessionId: string, promptId: string): Promise<void>;
  /** Ends the session permanently. A no-op for a closed session. */
  cancel(principal: Principal, sessionId: string, request: { by: string; reason?: string }): Promise<void>;
  /** Closes a session permanently; a running turn is interrupted first. */
  close(principal: Principal, sessionId: string, by: string): Promise<void>;
  /** Runs, or drops, the prompts held since a stop or a loss. */
  queue(principal: Principal, sessionId: string, request: { do: "release" | "drop"; by: string }): Promise<void>;
  /** Sends a request to Claude Code and resolves with its answer. Throws INVALID_ARGUMENT if Claude Code refuses. */
  control(caller: Caller, sessionId: string, request: ControlRequest, by: string): Promise<JsonObject>;
  /** Returns the number of sessions that wait for a slot before this session; `undefined` if it does not wait. */
  waitingBefore(sessionId: string): Promise<number | undefined>;
  /** Returns the number of this server's sessions with a running turn, waiting prompts or background work. */
  atWork(): number;
  /** Returns the text being written at the moment, if this server runs the session with `includePartialMessages`. */
  partial(sessionId: string): Promise<string>;
  /** Returns the git state of the session's folder; `undefined` outside a repository. */
  workTree(principal: Principal, sessionId: string): Promise<WorkTree | undefined>;
  /** Packs the session into a file on this machine, for another one. Throws SESSION_BUSY while a turn runs. */
  pack(principal: Principal, sessionId: string): Promise<PackReport>;
  rename(principal: Principal, sessionId: string, title: string): Promise<void>;
  /** Deletes the stored session; Claude Code's own transcript stays. Throws SESSION_BUSY while a turn runs. */
  delete(principal: Principal, sessionId: string, by: string): Promise<void>;
  get(principal: Principal, sessionId: string): Promise<SessionRecord>;
  list(query: SessionQuery): Promise<SessionRecord[]>;
  /** Returns sessions that worked unattended, the newest first. The call itself counts as attending. */
  takeUnattended(principal: Principal): Promise<SessionRecord[]>;
  /** Returns events with `id >= from`, in order, at most `limit`. */
  read(principal: Principal, sessionId: string, from: number, limit: number): Promise<StoredEvent[]>;
  /** Resolves once a session has the awaited event, after `timeoutMs`, or if `signal` aborts. */
  wait(principal: Principal, request: WaitRequest): Promise<{ woke: string | undefined }>;
  /**
   * Applies a closed gate: sessions of this server that may get no further prompt begin no further turn. Waiting prompts are
   * held, and processes end after the running turn. Resolves with the number of such sessions.
   */
  enforceGate(): Promise<number>;
  /** Begins nothing more. Running turns have `graceMs` to end; then they are recorded as interrupted and stopped. */
  stop(graceMs: number): Promise<void>;
  /** Ends everything: records running turns as interrupted by shutdown, then stops their processes. */
  drain(): Promise<void>;
}

/** Terms of one connection, under which its client starts and continues sessions. */
export interface ConnectionTerms extends Operator {
  /** Key by which connections share slots for processes. */
  readonly id: string;
  /** Called for each session that the client starts, reads, waits on or sends to. */
  readonly named?: ((sessionId: string) => void) | undefined;
}

/**
 * Parts of a request that were left out, because they would let more run without asking than the caller may approve. `withheld`
 * has a sentence for each.
 */
interface WithWithheld {
  withheld: readonly string[];
}

/** Spending of a budget on the present day, USD, as estimated by Claude Code. */
export interface BudgetUse extends Budget {
  readonly spentUsd: number;
  readonly reservedUsd: number;
  /** Part of `spentUsd` of models without a known price. */
  readonly unknownUsd: number;
}

/** Use of the account and of the budgets of a session. */
export interface SessionUse {
  /** `undefined` if no environment of the session is known here, so that neither is its account. */
  readonly account: (Account & Pick<AccountWindows, "windows">) | undefined;
  readonly reserve: PlanReserve | undefined;
  readonly budgets: readonly BudgetUse[];
}

interface CreatedSession extends WithWithheld {
  sessionId: string;
}

interface StartedSession extends CreatedSession {
  cursor: number;
}

export interface OpenSessionRequest {
  options: SessionOptions;
  /** Options of the operator, valid whatever the caller may approve. They replace options of the caller. */
  fromOperator?: Pick<SessionOptions, "allowedTools">;
  prompt: Pick<PromptRequest, "text" | "attachments" | "idempotencyKey" | "limits" | "via">;
}

export interface PromptRequest {
  text: string;
  attachments?: AttachmentSource[];
  idempotencyKey?: string;
  /** Default: `reject`. */
  whenBusy?: WhenBusy;
  limits?: TurnLimits;
  /** Forgets the conversation after this message. */
  resumeAt?: string;
  /** Name of the tool that was called. */
  via?: string;
  /** Profile that the session must have. Throws INVALID_ARGUMENT for another. */
  profile?: string;
  /** Verification of the turn. Default: the session's. */
  verify?: Verify;
}

export interface ContinueRequest {
  /** Surface of the caller, for the log. */
  by: string;
  limits?: TurnLimits;
}

export interface VerifyRequest extends ContinueRequest {
  /** Default: the session's. */
  verify?: Verify;
}

export interface AdoptRequest {
  sessionId: string;
  /** Without `cwd`: the last folder of the session. */
  options: Omit<SessionOptions, "cwd"> & { cwd?: string };
  fork: boolean;
  prompt: PromptRequest;
}

export interface AnswerRequest {
  requestId: string;
  /** `allow_for_session` also allows Claude Code's suggestion, otherwise the tool, until the session ends. */
  decision: "allow" | "deny" | "allow_for_session";
  /**
   * Approver that answers. An allow counts as this approver's only if given by a person, or by a program with the scope decide;
   * otherwise as the caller's.
   */
  by: ApproverName;
  /** True if a person gave the answer, as far as known: signed in at the console, or at an attended client. */
  asPerson?: boolean;
  denyMessage?: string;
  /** With `deny`: also ends the turn. */
  interrupt?: boolean;
  updatedInput?: JsonObject;
  updatedPermissions?: PermissionUpdate[];
}

export interface PassRequest {
  requestId: string;
  from: ApproverName;
  why: Exclude<PassReason, "time">;
}

export interface FillRequest {
  requestId: string;
  from: ApproverName;
  filled: JsonObject;
  /** Message for Claude Code if no reason follows. */
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
