import type { ControlRequest } from "../../domain/control.ts";
import type { BackgroundTask, NoticeKind } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { PermissionRequest, PermissionUpdate, Decision } from "../../domain/permission.ts";
import type { Principal } from "../../domain/principal.ts";
import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import type { Attachment, AttachmentSource } from "../../domain/prompt.ts";
import type { Identity, Origin, SessionState, ShimRef } from "../../domain/session.ts";
import type { AgentResult } from "../../domain/turn.ts";

/** Runs Claude Code. */

/** What a process of Claude Code tells the engine, in the engine's words. */
export type AgentSignal =
  /** What Claude Code needs is being installed, before the session waits for a slot. */
  | { type: "installing"; percent: number }
  | { type: "installed" }
  /** There is a slot for the process: it is started now. */
  | { type: "admitted" }
  /** `missing` are the prompts of `rerunOf` that Claude Code has not written down: they never ran. */
  | {
      type: "started";
      pid?: number;
      startedAt?: string;
      resumed: boolean;
      missing?: readonly string[];
      /** Who holds its pipes, where that is not this server. */
      shim?: ShimRef;
      /** The environment record that it was started with, if that is not the server's own. */
      environmentId?: string;
    }
  /**
   * In place of `started`, of a process that ran before. `lost` is how many of its lines, other than partial text, can no longer be
   * read; `environmentId` is the record that its shim has given back.
   */
  | { type: "attached"; lost: number; environmentId?: string }
  /** Claude Code answered its initialize: the process takes turns. */
  | { type: "ready" }
  /** A sign of life without news. */
  | { type: "alive" }
  | { type: "reported"; model?: string; permissionMode?: string; transcriptId?: string }
  /** Claude Code's own busy flag. Idle is the end of a turn: the first `result` is not. `id` is unique per frame. */
  | { type: "busy"; id: string }
  /** `agents`: ids of subagents that still run although Claude Code lists them nowhere. Said again when one of them ends. */
  | { type: "idle"; agents?: readonly string[] }
  /** A message for the log, trimmed of file bodies. `toolUseId` is the last tool call in it. */
  | { type: "message"; message: JsonObject; toolUseId?: string }
  | { type: "result"; result: AgentResult; message: JsonObject }
  /** The cost so far, cumulative over the session; `atStart` before the process has taken a prompt. */
  | { type: "spent"; costUsdTotal: number; atStart: boolean }
  /** Claude Code has finished with, or refused, the prompt of this id. */
  | { type: "prompt-settled"; promptId: string }
  | { type: "background"; tasks: BackgroundTask[] }
  | { type: "asked"; request: PermissionRequest }
  /** Claude Code no longer waits for this answer. */
  | { type: "withdrawn"; requestId: string }
  | { type: "notice"; kind: NoticeKind; message: string; details?: JsonObject }
  /**
   * Always the last signal of a process, and always sent. `error` says in one line why it could not run; `subtype` is the
   * `errorSubtype` of the turn, of one that was not started.
   */
  | { type: "exited"; code: number | null; signal: string | null; error?: string; subtype?: string };

/** What a request would be with another input. */
export interface Judgement extends Pick<PermissionRequest, "cwd" | "paths" | "refused" | "risk"> {
  /** The rules that deny in the session: its own and those of Claude Code's settings, in Claude Code's words. */
  readonly denying: readonly string[];
  /** Absolute paths that a shell command could mean, as far as its text shows them. */
  readonly mentions?: readonly string[];
}

/** One running Claude Code. But for `control` and `judge`, none of these methods throws or blocks; what comes of them arrives as signals. */
export interface AgentProcess {
  push(prompt: { id: string; text: string; attachments: readonly Attachment[] }): void;
  /** Resolves with Claude Code's answer; rejects with an AppError when it refuses, or is gone before it has answered. */
  control(request: ControlRequest): Promise<JsonObject>;
  answer(requestId: string, decision: Decision): void;
  /** Undefined for a request that is not open; rejects where it cannot be told. */
  judge(requestId: string, input: JsonObject): Promise<Judgement | undefined>;
  interrupt(): void;
  /** The stop recipe: interrupt, end of input, close, and SIGKILL to the whole tree at the end of its bounds. */
  stop(): void;
  /** SIGKILL to the whole tree, now. */
  kill(): void;
  /** Another server has the session now: one that it can go on with is left to it, as it is; any other is killed. */
  letGo(): void;
  /** What its lines up to this one have told is stored: they need not be kept for another owner. Nothing, where they are not kept. */
  acknowledge(line: number): void;
}

export interface AgentStart {
  sessionId: string;
  principal: Principal;
  options: SessionOptions;
  /**
   * What the operators allow: of the server that the session began at, and of this one. Its folders bind as those of this
   * server do, here and in all that takes a policy.
   */
  policy: SessionPolicy;
  /** The environment record that the process starts with; "" is that of the server itself. */
  environmentId: string;
  /** The id under which Claude Code keeps the session; another than `sessionId` once it was cleared. */
  transcriptId: string;
  /** No process has run for this session before: there is nothing to resume. */
  first: boolean;
  /** Claude has answered in this session: `transcriptId` has a transcript. */
  hasSpoken: boolean;
  /** Another session of Claude Code that this one begins with. */
  origin?: Origin;
  /** Forget what came after this message. */
  resumeAt?: string;
  /** The prompts of the turn that the last process was lost in: go on with it; what it had finished is not done again. */
  rerunOf?: readonly string[];
  /** Put into the environment of all that the process starts, so that it can be found again. */
  processTag: string;
  /** Nothing is started before; rejects when it is to be started no more. */
  admitted: Promise<void>;
  /** Whether one more process may be kept in reserve, beside those that run. */
  hasFreeSlot: () => Promise<boolean>;
  /** The lease's: who has a lower one may no longer tell the process anything. */
  epoch: number;
  /**
   * `line` comes with the last signal of what Claude Code's line of that number has told, when all lines before it are told as well.
   * A line that tells nothing comes with `alive`, then or later.
   */
  onSignal: (signal: AgentSignal, line?: number) => void;
  /** The end of what is being written just now, "" when it is whole: told live only, and in no log. */
  onPartial: (text: string) => void;
}

/** A process that ran before, whose shim is there. */
export interface AgentReattach extends AgentStart {
  reattach: {
    shim: ShimRef;
    /** What follows this line is told. */
    line: number;
    epoch: number;
    /** Requests that are open in the session. `withdrawn` follows for each that Claude Code no longer waits for. */
    open: readonly PermissionRequest["requestId"][];
    /** The last messages of the running turn, in order, at most 200. */
    spoken: readonly JsonObject[];
    /** What answers have changed of the permissions of the process, in order. */
    changes: readonly PermissionUpdate[];
  };
}

/** Of a recorded process whose owner died. `ours`: this server may attach to it; `theirs`: another may; `gone`: no server can. */
export type ShimStanding = "ours" | "theirs" | "gone";

/** A session, as far as it is about where it may work. */
export interface PlacedSession extends Readonly<Pick<AgentStart, "environmentId" | "policy" | "principal">> {
  readonly options: Pick<SessionOptions, "cwd" | "env">;
}

/** What is known of a process whose owner died. `startedAt` is in the system's own unit; it tells a reused pid apart. */
export interface Leftover {
  processTag: string;
  pid?: number;
  startedAt?: string;
}

/** A session that Claude Code has a transcript of. */
export interface FoundSession {
  /** The folder it was in last. */
  cwd: string | undefined;
}

/** A start that is thought of: of a process for a new session, or for one that goes on. */
export interface StartRequest extends Pick<AgentStart, "environmentId" | "options" | "policy" | "principal"> {
  /** The session begins with nothing that was said before. */
  isNew?: boolean;
  /** The session of Claude Code that it goes on with. */
  goesOnWith?: string | undefined;
}

/** What there is to know of a start before it is made. */
export interface StartPlan {
  /** Whose configuration and money it would use. */
  identity: Identity;
  /** Of a new session: the id of a spare that is kept for it. Where there is none, any id will do. */
  spareId?: string | undefined;
  /** The process that has what it goes on with open just now, in a terminal or wherever else. */
  openIn?: OpenIn | undefined;
}

/** A process that has a session open, and how it was started, in Claude Code's word. */
export interface OpenIn {
  pid: number;
  how: string;
}

/** How a folder stands against its last commit in git. */
export type WorkTree =
  | {
      /** Undefined where there is none yet: every file is an added one. */
      commit?: string;
      diff: string;
      /** New files, relative to the folder. */
      untracked: string[];
      /** The diff, or the list of new files, goes on. */
      truncated?: true;
    }
  /** Why nothing of it is shown, in sentences. */
  | { refused: string };

/** Processes that were started ahead of the sessions that will have them. */
export interface Spares {
  /** How many of them no session has yet. */
  readonly available: number;
  /** Ends those. */
  retire(): Promise<void>;
}

/** The environment records of clients, in memory only. */
export interface SessionEnvironments {
  /** Whose configuration and money such a process would use. Undefined where this server has no such record. */
  identityOf(environmentId: string, principal: Principal, options: Pick<SessionOptions, "env">): Identity | undefined;
  /** The session has to do with this record: it is kept, and its secrets are masked in the session's events. */
  hold(sessionId: string, environmentId: string): void;
  /** The record of a connection, open or opened within `ms`, with which a process of the session has that identity. */
  find(
    identity: Identity,
    session: { readonly principal: Principal; readonly options: Pick<SessionOptions, "env"> },
    ms: number,
  ): Promise<string | undefined>;
}

export interface AgentRuntime {
  readonly environments: SessionEnvironments;
  /**
   * Checks a start before it is made, once for each prompt and each new session. Throws AppError: INVALID_ARGUMENT naming the
   * field for a start that would fail, PERMISSION_DENIED for a principal whose folders are unknown (as do all methods that take a
   * principal). A prompt to a live process, or to a session of another server, is planned as well: the configuration may have
   * changed since its start.
   */
  plan(request: StartRequest): Promise<StartPlan>;
  readonly spares: Spares;
  /**
   * Not of a start but of an answer: the folders that it would open to a process that runs. Refuses them as `plan` does;
   * where the principal is confined to folders, resolves with them as they really are.
   */
  checkFolders(session: PlacedSession, folders: readonly string[]): Promise<string[]>;
  /** Of a prompt, whether or not it starts anything: reads the images that go with it. Refuses what is none, too large, or outside the folders: INVALID_ARGUMENT. */
  attach(session: PlacedSession, sources: readonly AttachmentSource[]): Promise<Attachment[]>;
  /** Undefined where the folder is in no repository. Refuses a folder as `plan` does. */
  workTree(session: PlacedSession): Promise<WorkTree | undefined>;
  /**
   * Of an adoption, before there is anything to plan: what Claude Code itself knows of a session, of those that a session with
   * these options could go on with.
   */
  find(
    sessionId: string,
    by: Omit<PlacedSession, "options"> & { readonly options: Pick<SessionOptions, "env"> },
  ): Promise<FoundSession | undefined>;
  /**
   * Installs what Claude Code needs and this machine has not got, and tells how much of it is done, in percent; says nothing
   * where nothing is missing, nor after the end. Rejects with an AppError that says what to do.
   */
  installMissing(
    session: Pick<AgentStart, "environmentId"> & {
      readonly options: Pick<SessionOptions, "pathToClaudeCodeExecutable">;
    },
    onProgress: (percent: number) => void,
  ): Promise<void>;
  /**
   * Starts Claude Code for the session: new, or resumed where a transcript of that id exists. It judges folders once more, as
   * late as can be, and says as signals what there is to say of the process that starts: a start need not have been planned
   * (one that goes on with a lost turn), or may come long after.
   */
  start(request: AgentStart): AgentProcess;
  shimOf(process: SessionState["process"]): Promise<ShimStanding>;
  /** Why a process is `gone`, beyond the death of its owner: a sentence for people. Undefined where it had no shim. */
  whyGone(processTag: string, process: SessionState["process"]): Promise<string | undefined>;
  /**
   * Goes on with a process whose owner died. Signals come as from `start`, without `admitted`, and `attached` in place of `started`;
   * requests that Claude Code still waits for are asked again. Where it cannot: `exited`, when the process has gone.
   */
  reattach(request: AgentReattach): AgentProcess;
  /** Ends a process that a dead owner left, with all it started; resolves when it is gone. */
  endLeftover(leftover: Leftover): Promise<void>;
  /** Ends what dead servers of this store have left, whatever is recorded of it; resolves with how many processes that were. */
  endAllLeftovers(): Promise<number>;
  /** Resolves when no process of this runtime is left. The caller has stopped them; stopping takes a bounded time. */
  drain(): Promise<void>;
}
