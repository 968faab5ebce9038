import type { SDKMessage, SDKSessionStateChangedMessage } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import { JsonObject } from "../domain/json.ts";
import { BackgroundTask, type NoticeKind } from "../domain/event.ts";
import type { Account } from "../domain/plan.ts";
import { AgentResult } from "../domain/turn.ts";
import type { AgentSignal } from "../engine/ports.ts";
import { readFailedServers, failedServersNotice } from "./process/failed-servers.ts";
import { describeForeignOrigin } from "./process/peer-messages.ts";
import { PlanReader } from "./plan-reader.ts";
import { RunningAgents } from "./running-agents.ts";
import { resultText, toAgentResult, trimHookResponse, trimToolResult, withExactCosts } from "./results.ts";
import { SideReports } from "./side-reports.ts";
/**
 * Translates messages of the SDK into signals of the engine, any number for each message. The set of messages is open: an
 * unknown message is kept in the log unchanged, never dropped and never an error.
 */

/** Signs of life without news. Not stored: only show that the turn is not stuck. */
const ALIVE = new Set([
  "stream_event",
  "tool_progress",
  "system/task_updated",
  "system/thinking_tokens",
  "system/hook_started",
  "system/hook_progress",
  "system/control_request_progress",
]);

/** Messages about Claude Code's own bookkeeping, dropped. */
const NOISE = new Set([
  "keep_alive",
  "attachment",
  "session_title_changed",
  "active_goal",
  "system/commands_changed",
  "system/files_persisted",
  "system/memory_recall",
  "system/worker_shutting_down",
]);

const NOTICES: ReadonlyMap<string, NoticeKind> = new Map(
  Object.entries({
    "system/api_retry": "retry",
    "system/compact_boundary": "compaction",
    "system/model_fallback": "fallback",
    "system/model_refusal_fallback": "fallback",
    "system/model_refusal_no_fallback": "fallback",
    "system/permission_denied": "denial",
    "system/mirror_error": "data_loss",
    "system/session_writes_lost": "data_loss",
    conversation_reset: "warning",
  } satisfies Record<string, NoticeKind>),
);

/** Schemas of signals that enter state and log. A value of another type would make the stored session unreadable. */
const STORED: Partial<Record<AgentSignal["type"], z.ZodType>> = {
  reported: z.looseObject({ model: z.string().optional(), permissionMode: z.string().optional() }),
  busy: z.looseObject({ id: z.string() }),
  message: z.looseObject({ toolUseId: z.string().optional() }),
  result: z.looseObject({ result: AgentResult }),
  background: z.looseObject({ tasks: z.array(BackgroundTask) }),
};

const canBeStored = (signal: AgentSignal): boolean => STORED[signal.type]?.safeParse(signal).success ?? true;

/** Missing in the types of the SDK, but sent for every prompt with a uuid. */
const CommandLifecycle = z.object({
  command_uuid: z.string(),
  state: z.string(),
  /** Set for a prompt given by a scheduled task. */
  wakeup_source: z.string().optional(),
});

/** Reads the messages of a process in order. */
export class MessageReader {
  readonly #mask: (text: string) => string;
  #transcriptId: string | undefined;
  #lastInit = "";
  /** Names of MCP servers already reported as failed. */
  readonly #failed = new Set<string>();
  #assistantError: string | undefined;
  /** Last reported summary of each task, by id. */
  readonly #summaries = new Map<string, string>();
  readonly #plan: PlanReader;
  readonly #sideReports: SideReports;
  readonly #agents = new RunningAgents();

  /**
   * `transcriptId` is the session id given to Claude Code at its start. `mask` runs before any cut. `expectsStructured` is true
   * for a session with an `outputFormat`; `account` pays for the process.
   */
  constructor(
    transcriptId?: string,
    mask: (text: string) => string = (text) => text,
    expected: { readonly account?: Account; readonly expectsStructured: boolean } = { expectsStructured: false },
  ) {
    this.#mask = mask;
    this.#transcriptId = transcriptId;
    this.#plan = new PlanReader(expected.account);
    this.#sideReports = new SideReports(mask, expected);
  }

  /** Current session id of Claude Code, "" if unknown. */
  get transcriptId(): string {
    return this.#transcriptId ?? "";
  }

  /** Reads messages of the running turn that another server has reported, as stored in the log, in order. */
  remember(spoken: readonly JsonObject[]): void {
    for (const message of spoken) {
      const name = nameOf(message);
      const { error, summary, task_id: id } = message;
      this.#sideReports.remember(name, message);
      this.#agents.read(name, message);
      if (name === "system/init") {
        this.#lastInit = JSON.stringify(message);
        this.#readServers(message);
      }
      if (name === "result") this.#assistantError = undefined;
      if (name === "assistant" && typeof error === "string") this.#assistantError = error;
      if (name === "assistant") this.#plan.readAssistant(message);
      if (name === "system/task_progress" && typeof id === "string" && typeof summary === "string")
        this.#summaries.set(id, summary);
    }
  }

  read(message: SDKMessage): AgentSignal[] {
    const raw = toLog(message);
    const name = nameOf(raw);
    return [...this.#readId(message), ...this.#readMessage(message, name, raw), ...this.#agents.read(name, raw)];
  }

  /**
   * Reports a new session id: after a `/clear` as prompt, Claude Code continues under another id, to be resumed from then on.
   */
  #readId(message: SDKMessage): AgentSignal[] {
    const { session_id: id } = message;
    const changed = typeof id === "string" && this.#transcriptId !== undefined && id !== this.#transcriptId;
    if (!changed) return [];
    this.#transcriptId = id;
    return [{ type: "reported", transcriptId: id }];
  }

  #readMessage(message: SDKMessage, name: string, raw: JsonObject): AgentSignal[] {
    if (NOISE.has(name)) return [];
    this.#sideReports.note(name, raw);
    if (ALIVE.has(name)) return [{ type: "alive" }];
    if (name === "command_lifecycle") return readLifecycle(raw);
    if (name === "rate_limit_event") return this.#plan.readEvent(raw);
    if (name === "system/task_notification") this.#sideReports.warn(this.#plan.lostAgent(raw));
    const kind = NOTICES.get(name);
    if (kind) return [{ type: "notice", kind, message: describe(kind, raw), details: raw }];
    try {
      const signals = this.#read(message, raw);
      if (signals.every(canBeStored)) return signals;
    } catch {
      // Keeps a message that lacks fields as a plain message.
    }
    return [{ type: "message", message: raw }];
  }

  #read(message: SDKMessage, raw: JsonObject): AgentSignal[] {
    if (message.type === "system") return this.#readSystem(message, raw);
    if (message.type === "assistant") {
      this.#assistantError = message.error ?? this.#assistantError;
      const spoken: AgentSignal = { type: "message", message: raw, ...lastToolUse(message.message.content) };
      return [...this.#plan.readAssistant(raw), spoken];
    }
    if (message.type === "user") {
      // A replay is a prompt of this server coming back.
      return "isReplay" in message ? [] : [{ type: "message", message: trimToolResult(raw) }];
    }
    if (message.type === "result") {
      const verdict = this.#sideReports.judge(message, resultText(message));
      const limit = this.#plan.limitOf(message);
      const refused = limit && { limit, category: "limit" as const };
      const result = { ...toAgentResult(message, this.#assistantError), ...verdict, ...refused };
      this.#assistantError = undefined;
      const stranger = describeForeignOrigin(message.origin);
      const begun = stranger === undefined ? [] : [unpromptedNotice(stranger, { origin: raw["origin"] ?? null })];
      return [...begun, { type: "result", result, message: { ...withExactCosts(raw), result: result.text } }];
    }
    return [{ type: "message", message: raw }];
  }

  #readSystem(message: Extract<SDKMessage, { type: "system" }>, raw: JsonObject): AgentSignal[] {
    const { subtype } = message;
    if (subtype === "init") return this.#readInit(message, raw);
    if (subtype === "session_state_changed") return readState(message);
    if (subtype === "background_tasks_changed") {
      return [{ type: "background", tasks: message.tasks.filter((task) => !task.ambient).map(toTask) }];
    }
    if (subtype === "status") {
      const { permissionMode } = message;
      return permissionMode === undefined ? [{ type: "alive" }] : [{ type: "reported", permissionMode }];
    }
    if (subtype === "task_progress") return this.#readProgress(message, raw);
    return [{ type: "message", message: subtype === "hook_response" ? trimHookResponse(raw, this.#mask) : raw }];
  }

  /** Sent with every tool call of a subagent; only a changed `summary` is news. */
  #readProgress({ task_id: id, summary }: { task_id: string; summary?: string }, raw: JsonObject): AgentSignal[] {
    if (summary === undefined || this.#summaries.get(id) === summary) return [{ type: "alive" }];
    this.#summaries.set(id, summary);
    return [{ type: "message", message: raw }];
  }

  /** Keeps the first and changed `init` messages only, because every turn begins with an equal `init` of 3 KB. */
  #readInit(message: { model: string; permissionMode: string }, raw: JsonObject): AgentSignal[] {
    const { uuid: _uuid, user_message_uuids: _prompts, user_message_uuid: _prompt, ...facts } = raw;
    const text = JSON.stringify(facts);
    const changed = text !== this.#lastInit;
    this.#lastInit = text;
    const { model, permissionMode } = message;
    const reported: AgentSignal = { type: "reported", model, permissionMode };
    return changed ? [reported, ...this.#readServers(raw), { type: "message", message: facts }] : [reported];
  }

  /** Reports each failed server once. */
  #readServers(init: JsonObject): AgentSignal[] {
    const failed = readFailedServers(init).filter((name) => !this.#failed.has(name));
    failed.forEach((name) => this.#failed.add(name));
    return failed.length === 0 ? [] : [failedServersNotice(failed)];
  }
}

/** `RunningAgents` reports "idle". Ignores "requires_action", because the request itself arrives separately. */
function readState({ state, uuid }: SDKSessionStateChangedMessage): AgentSignal[] {
  if (state === "idle") return [];
  return state === "running" ? [{ type: "busy", id: uuid }] : [{ type: "alive" }];
}

function toLog(message: SDKMessage): JsonObject {
  const { session_id: _, ...kept } = JsonObject.parse(message);
  return kept;
}

function nameOf(raw: JsonObject): string {
  const { type, subtype } = raw;
  if (typeof type !== "string") return "";
  return type === "system" && typeof subtype === "string" ? `system/${subtype}` : type;
}

function readLifecycle(raw: JsonObject): AgentSignal[] {
  const frame = CommandLifecycle.safeParse(raw);
  if (!frame.success) return [];
  const { command_uuid: promptId, state, wakeup_source: source } = frame.data;
  if (state === "started" && source !== undefined) return [unpromptedNotice("a scheduled task", { source })];
  return state === "completed" || state === "cancelled" ? [{ type: "prompt-settled", promptId }] : [];
}

/** Reports a turn that no caller has prompted, with its origin. */
function unpromptedNotice(who: string, details: JsonObject): AgentSignal {
  return { type: "notice", kind: "warning", message: `This turn was begun by ${who}.`, details };
}

function lastToolUse(content: readonly { type: string; id?: string }[]): { toolUseId?: string } {
  const id = content.findLast((block) => block.type === "tool_use")?.id;
  return id === undefined ? {} : { toolUseId: id };
}

function toTask(task: { task_id: string; task_type: string; description: string }) {
  return { id: task.task_id, type: task.task_type, description: task.description };
}

const Retry = z.object({ attempt: z.number(), max_retries: z.number(), retry_delay_ms: z.number(), error: z.string() });

function describe(kind: NoticeKind, raw: JsonObject): string {
  const retry = Retry.safeParse(raw);
  if (kind === "retry" && retry.success) {
    const { attempt, max_retries: most, retry_delay_ms: delay, error } = retry.data;
    return `${error}: retry ${String(attempt)} of ${String(most)} in ${(delay / 1000).toFixed(1)} s`;
  }
  const text = raw["message"] ?? raw["content"];
  return typeof text === "string" && text !== "" ? text : nameOf(raw);
}
