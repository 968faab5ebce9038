import type { BackgroundTask, NoticeKind } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { Account, PlanReport } from "../../domain/plan.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import type { Identity, ProcessIdentity, ShimRef } from "../../domain/process.ts";
import type { AgentResult } from "../../domain/turn.ts";

/** Signals from a process of Claude Code, in the engine's words. */
export type AgentSignal =
  /** Progress of installing missing parts of Claude Code, before the session waits for a slot. */
  | { type: "installing"; percent: number }
  | { type: "installed" }
  /** The process has a slot and is started now. */
  | { type: "admitted" }
  /** The conversation of another node was written here; `missing`: numbers of turns that it lacks. */
  | { type: "restored"; goesOnFrom: number; missing: readonly number[] }
  /** `missing`: prompts of `rerunOf` that Claude Code has not recorded, so they never ran. */
  | ({
      type: "started";
      resumed: boolean;
      missing?: readonly string[];
      /** Holder of the process's pipes; absent if this server holds them. */
      shim?: ShimRef;
      /** Environment record of the start; absent for the server's own. */
      environmentId?: string;
      identity?: Identity;
    } & ProcessIdentity)
  /**
   * Replaces `started` for a process that ran before. `lost`: number of its lines, partial text excluded, that can no longer be
   * read. `environmentId`: record that its shim has given back.
   */
  | { type: "attached"; lost: number; environmentId?: string }
  /** Claude Code has answered `initialize`, so the process takes turns. */
  | { type: "ready" }
  /** Claude Code is alive, but has nothing to report. */
  | { type: "alive" }
  | { type: "reported"; model?: string; permissionMode?: string; transcriptId?: string }
  /** Claude Code begins to work. A turn ends with `idle`, not with the first `result`. `id` is unique per signal. */
  | { type: "busy"; id: string }
  /** `agents`: ids of subagents that still run although Claude Code lists them nowhere. Repeated after one of them ends. */
  | { type: "idle"; agents?: readonly string[] }
  /** A message for the log, trimmed of file bodies. `toolUseId`: last tool call in `message`. */
  | { type: "message"; message: JsonObject; toolUseId?: string }
  | { type: "result"; result: AgentResult; message: JsonObject }
  /** Cost so far, USD, cumulative over the session. `atStart`: before the process has taken a prompt. */
  | { type: "spent"; costUsdTotal: number; atStart: boolean }
  /** The API has reported on the plan of `account`, which pays for the process. */
  | { type: "plan"; account: Account; report: PlanReport }
  /** Claude Code has finished, or refused, the prompt `promptId`. */
  | { type: "prompt-settled"; promptId: string }
  | { type: "background"; tasks: BackgroundTask[] }
  | { type: "asked"; request: PermissionRequest }
  /** Claude Code no longer waits for the answer. */
  | { type: "withdrawn"; requestId: string }
  | { type: "notice"; kind: NoticeKind; message: string; details?: JsonObject }
  /**
   * Always the last signal of a process, and always sent. `error`: reason why the process could not run, one line. `subtype`:
   * `errorSubtype` of the turn, for a process that was not started.
   */
  | { type: "exited"; code: number | null; signal: string | null; error?: string; subtype?: string };
