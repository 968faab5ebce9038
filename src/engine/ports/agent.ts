import type { ControlRequest } from "../../domain/control.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { PermissionRequest, PermissionUpdate, Decision } from "../../domain/permission.ts";
import type { Principal } from "../../domain/principal.ts";
import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import type { Attachment, AttachmentSource } from "../../domain/prompt.ts";
import type { Identity, Origin, ProcessIdentity, ShimRef } from "../../domain/process.ts";
import type { SessionState } from "../../domain/session.ts";
import type { AgentSignal } from "./agent-signal.ts";
import type { SessionFiles } from "./conversations.ts";
import type { SessionEnvironments } from "./environments.ts";
import type { CheckRunner, FolderWatch, JudgedCommand } from "./evidence.ts";

/** The engine's port to Claude Code. */

/** Assessment of a request with changed input (`updatedInput`). */
export interface Judgement extends JudgedCommand {
  /** Deny rules of the session, from its options and Claude Code's settings, in Claude Code's syntax. */
  readonly denying: readonly string[];
}

/** A running Claude Code. Apart from `control` and `judge`, no method throws or blocks; outcomes arrive as signals. */
export interface AgentProcess {
  push(prompt: { id: string; text: string; attachments: readonly Attachment[] }): void;
  /**
   * Sends the request that the API refused at a limit once more, unchanged. Only after a result with `limit`, because anything
   * else would add to the conversation. The next result names `id` in place of the prompt.
   */
  sendAgain(id: string): void;
  /** Resolves with Claude Code's answer. Rejects with an `AppError` if Claude Code refuses, or is gone before answering. */
  control(request: ControlRequest): Promise<JsonObject>;
  answer(requestId: string, decision: Decision): void;
  /** Resolves with `undefined` for a request that is not open; rejects if the risk cannot be determined. */
  judge(requestId: string, input: JsonObject): Promise<Judgement | undefined>;
  /** Lets every tool use wait for `until`, at most 2 s. */
  holdTools(until: Promise<unknown>): void;
  interrupt(): void;
  /** Stops in steps: interrupt, end of input, close, and SIGKILL to the whole tree at the end of the time limits. */
  stop(): void;
  /** Sends SIGKILL to the whole tree, now. */
  kill(): void;
  /** Leaves the process to the server that has the session now, or kills a process that no server can go on with. */
  letGo(): void;
  /** Confirms that all news up to `line` is stored, so that no next owner needs these lines. A no-op if none are kept. */
  acknowledge(line: number): void;
}

export interface AgentStart {
  sessionId: string;
  principal: Principal;
  options: SessionOptions;
  /**
   * The stricter of two policies: of the server that began the session, and of this server. The folders of both apply, as in
   * every method with a policy.
   */
  policy: SessionPolicy;
  /** Environment record for the start; "" is the server's own. */
  environmentId: string;
  /** Id of Claude Code's transcript; differs from `sessionId` after /clear. */
  transcriptId: string;
  /** True if no process has run for the session before, so there is nothing to resume. */
  first: boolean;
  /** True if Claude has answered in the session, so `transcriptId` has a transcript. */
  hasSpoken: boolean;
  /** Transcript that the session begins with: the original of a fork, or a session started outside this server. */
  origin?: Origin;
  /** Last message of the conversation to keep. Claude Code forgets all later messages. */
  resumeAt?: string;
  /** Prompts of the turn lost with the last process. Claude Code goes on with the turn and repeats no finished work. */
  rerunOf?: readonly string[];
  /** True for a process that has only to send the refused request again; `exited` (`lost`) follows if none was the last. */
  sendsAgain?: boolean;
  /** True if the cost must be reported after each response. */
  watchesCost: boolean;
  /** True if another node ran the last process, whose last cost the transcript here may lack. */
  isMoved?: boolean;
  /** Tag in the environment of every process started from here, to find leftovers by. */
  processTag: string;
  /** Resolves once the process may start; rejects if the start is cancelled. */
  admitted: Promise<void>;
  /** Resolves with true if another spare may be kept beside the running processes. */
  hasFreeSlot: () => Promise<boolean>;
  /** Epoch of the lease. An owner with a lower epoch may no longer write to the process. */
  epoch: number;
  /**
   * Receives a signal. `line` is the number of a line of Claude Code, given with the last signal of the line, once all earlier
   * lines are reported. A line without a signal is reported with `alive`, at once or later.
   */
  onSignal: (signal: AgentSignal, line?: number) => void;
  /** Gets the end of the text being written, "" once complete. Live only, in no log. */
  onPartial: (text: string) => void;
}

/** Reattachment to the process of a former owner, through a `shim`. */
export interface AgentReattach extends AgentStart {
  reattach: {
    shim: ShimRef;
    /** Last line already reported; later lines follow. */
    line: number;
    /** Epoch of this server's lease. */
    epoch: number;
    /** Requests open in the session. `withdrawn` follows for each that Claude Code no longer waits for. */
    open: readonly PermissionRequest["requestId"][];
    /** Last messages of the running turn, in order, at most 200. */
    spoken: readonly JsonObject[];
    /** Permission changes that answers made in the process, in order. */
    changes: readonly PermissionUpdate[];
  };
}

/**
 * Relation of a process to this server after the owner of the process died. `ours`: this server may attach; `theirs`: another
 * may; `gone`: none can, as for every process of another machine, whose shim has ended it with the lease of its node.
 */
export type ShimRelation = "ours" | "theirs" | "gone";

/** Parts of a session that decide on allowed folders. */
export interface PlacedSession extends Readonly<Pick<AgentStart, "environmentId" | "policy" | "principal">> {
  readonly options: Pick<SessionOptions, "cwd" | "env">;
}

/** A process whose owner died. */
export interface Leftover extends ProcessIdentity {
  readonly processTag: string;
}

/** A session found by its transcript. */
export interface FoundSession {
  /** Last folder of the session. */
  cwd: string | undefined;
}

/** A start for `plan` to check: of a new session, or to continue an existing one. */
export interface StartRequest extends Pick<AgentStart, "environmentId" | "options" | "policy" | "principal"> {
  /** True if the session begins without an earlier conversation. */
  isNew?: boolean;
  /** Transcript id of the session to continue. */
  goesOnWith?: string | undefined;
}

/** Facts about a start before it is made. */
export interface StartPlan {
  /** Configuration and payer of the process. */
  identity: Identity;
  /** Id of a spare kept for a new session, which should get this id. `undefined` if any id will do. */
  spareId?: string | undefined;
  /** Process that has the session `goesOnWith` open at present, in a terminal or elsewhere. */
  openIn?: OpenIn | undefined;
}

/** A process with a session open. `how`: kind of its start, in Claude Code's word. */
export interface OpenIn {
  pid: number;
  how: string;
}

/** State of a folder against its last commit in git. */
export type WorkTree =
  | {
      /** `undefined` before the first commit: every file is an added one. */
      commit?: string;
      diff: string;
      /** New files, relative to the folder. */
      untracked: string[];
      /** Set if the diff, or the list of new files, goes on. */
      truncated?: true;
    }
  /** Reason why nothing is shown, in sentences. */
  | { refused: string };

/** Processes started ahead of their sessions (`--spares`). */
export interface Spares {
  /** Number of spares without a session. */
  readonly available: number;
  /** Ends the `available` spares. */
  retire(): Promise<void>;
}

export interface AgentRuntime extends SessionFiles {
  readonly environments: SessionEnvironments;
  /**
   * Checks a start, once for each new session and each prompt; also for a prompt to a running process or to a session of
   * another server, because the configuration may have changed. Throws `AppError`: INVALID_ARGUMENT, naming the field, if the
   * start would fail; PERMISSION_DENIED if the folders of the principal are unknown (as all methods with a principal do).
   */
  plan(request: StartRequest): Promise<StartPlan>;
  readonly spares: Spares;
  readonly folders: FolderWatch;
  readonly checks: CheckRunner;
  /**
   * Checks folders that an answer would open to a running process. Refuses them as `plan` does; for a principal confined to
   * folders, resolves with their real paths.
   */
  checkFolders(session: PlacedSession, folders: readonly string[]): Promise<string[]>;
  /**
   * Reads the images of a prompt, even if the prompt starts nothing. Throws INVALID_ARGUMENT for a file that is not an image,
   * too large or outside the folders.
   */
  attach(session: PlacedSession, sources: readonly AttachmentSource[]): Promise<Attachment[]>;
  /** Resolves with `undefined` outside a repository. Refuses a folder as `plan` does. */
  workTree(session: PlacedSession): Promise<WorkTree | undefined>;
  /** Looks up a transcript for an adoption, among those that a session with `options` could continue. */
  find(
    sessionId: string,
    by: Omit<PlacedSession, "options"> & { readonly options: Pick<SessionOptions, "env"> },
  ): Promise<FoundSession | undefined>;
  /**
   * Installs missing parts of Claude Code. `onProgress` gets percents, none if nothing is missing, and none after the end.
   * Rejects with an `AppError` that says what to do.
   */
  installMissing(
    session: Pick<AgentStart, "environmentId"> & {
      readonly options: Pick<SessionOptions, "pathToClaudeCodeExecutable">;
    },
    onProgress: (percent: number) => void,
  ): Promise<void>;
  /**
   * Starts Claude Code for the session: new, or resumed if a transcript of `transcriptId` exists. Checks folders again as late
   * as possible and reports objections as signals, because a start need not have been planned (a rerun of a lost turn), or may
   * come long after.
   */
  start(request: AgentStart): AgentProcess;
  shimRelation(process: SessionState["process"]): Promise<ShimRelation>;
  /**
   * Resolves with the reason why a process is `gone`, beyond the death of its owner, a sentence for people; `undefined` for a
   * process without a shim.
   */
  whyGone(processTag: string, process: SessionState["process"]): Promise<string | undefined>;
  /**
   * Goes on with a process whose owner died. Signals come as from `start`, without `admitted`, and with `attached` in place of
   * `started`; requests that Claude Code still waits for are asked again. If this fails, `exited` follows once the process has
   * gone.
   */
  reattach(request: AgentReattach): AgentProcess;
  /** Ends a process that a dead owner left, and all processes started from there; resolves once all are gone. */
  endLeftover(leftover: Leftover): Promise<void>;
  /** Ends all leftover processes of dead servers of this store, recorded or not. Resolves with the number of processes. */
  endAllLeftovers(): Promise<number>;
  /**
   * Gives the processes of this runtime `forMs` from now, unless another call follows. Their shims then end them, also if this
   * server is dead or frozen. Never called for a store of one machine, whose processes have no such limit.
   */
  leaseRenewed(forMs: number): void;
  /** Resolves once no process of this runtime is left. The caller has called `stop` before, so the time is bounded. */
  drain(): Promise<void>;
}
