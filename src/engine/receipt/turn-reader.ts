import { z } from "zod";
import { CallBlock, OutcomeBlock } from "../../domain/blocks.ts";
import type { DataOf } from "../../domain/event-table.ts";
import type { StoredEvent } from "../../domain/event.ts";
import { JsonObject } from "../../domain/json.ts";
import type { CommandRun, Receipt, ReceiptCounts } from "../../domain/receipt.ts";
import { VERIFICATION_TOOL } from "../../domain/verification.ts";
import { runOf, SHELLS, type ToolOutcome } from "./ran-command.ts";
import { ToolFiles } from "./tool-files.ts";

/** Facts that the events of a turn show, without the folder. */
export interface TurnFacts {
  /** In the order of their calls, without those left out. */
  readonly commands: readonly CommandRun[];
  /** Numbers of all commands. */
  readonly ran: Pick<ReceiptCounts, "failed" | "ran" | "unknown">;
  readonly files: ToolFiles;
  readonly requests: Receipt["requests"];
  /** Number of requests left out. */
  readonly requestsOmitted: number;
  readonly denied: number;
  /** Number of background tasks, if the turn has changed it. */
  readonly background: number | undefined;
  readonly mcpTools: readonly string[];
  readonly hooks: readonly string[];
}

/** Maximum number of entries of each list kept while reading. */
const KEPT = 1_000;
/** Maximum number of names of MCP tools and of hooks. */
const MAX_NAMES = 20;

interface Call {
  readonly eventId: number;
  readonly tool: string;
  readonly input: JsonObject;
}

const Blocks = z.object({ message: z.object({ content: z.array(z.unknown()) }) });

/** Data that Claude Code gives with results of tools, by call. */
const ResultMeta = z.object({
  id: z.string(),
  non_execution_kind: z.string().optional(),
  call_ended: z.string().optional(),
  permission_decision: z.object({ decision: z.string() }).optional().catch(undefined),
});
type ResultMeta = z.infer<typeof ResultMeta>;

const UserMessage = Blocks.extend({
  tool_use_result: JsonObject.optional().catch(undefined),
  tool_result_meta: z.array(z.unknown()).optional().catch(undefined),
});

const Denials = z.array(z.looseObject({ tool_use_id: z.string() })).catch([]);
const DenialNotice = z.object({ tool_use_id: z.string() });

/**
 * Kinds of results after an interrupt. Claude Code also says `user-rejected` of a command that it has stopped while running, then
 * without a decision.
 */
const MAY_HAVE_RUN = /^(?:cancelled|interrupted)$/;
const REFUSED = /^(?:automode-|permission-)/;

/**
 * Reads the events of one turn in order, from `turn.started` on, and before them the prompts of the turn (`prompt.queued`).
 * Keeps little, because a turn can have 50,000 events.
 */
export class TurnReader {
  readonly #calls = new Map<string, Call>();
  readonly #files = new ToolFiles();
  readonly #asked = new Map<string, { eventId: number; toolUseId: string }>();
  readonly #requests: Receipt["requests"][number][] = [];
  readonly #denied = new Set<string>();
  readonly #mcpTools = new Set<string>();
  readonly #hooks = new Set<string>();
  /** Inputs changed by an answer, by call. */
  readonly #changedInputs = new Map<string, JsonObject>();
  /** Checks and failed commands, and all others: each list loses its oldest entries first. */
  readonly #telling: CommandRun[] = [];
  readonly #others: CommandRun[] = [];
  readonly #ran = { ran: 0, failed: 0, unknown: 0 };
  #requestCount = 0;
  /** Ids of all calls, because the denials of a result can be those of earlier turns. */
  readonly #ids = new Set<string>();
  #background: number | undefined;
  #needsLook: boolean;

  /**
   * `background`: number of background tasks at the beginning of the turn. `isOwn`: true if Claude Code began the turn by itself,
   * after background work whose last changes count for it. `mayHook`: true if the process reads settings, whose
   * hooks run without an event, unless the session has `includeHookEvents`.
   */
  constructor({
    background,
    isOwn = false,
    mayHook = false,
  }: {
    readonly background: number;
    readonly isOwn?: boolean;
    readonly mayHook?: boolean;
  }) {
    this.#needsLook = background > 0 || isOwn || mayHook;
  }

  /**
   * False if nothing in the turn can have changed a file: no call of a tool, no hook, no command of Claude Code (`/name`), no
   * background work, no lost message.
   */
  get needsLook(): boolean {
    return this.#needsLook;
  }

  /** Absolute paths of files that tools have changed, for `FolderWatch.compare`. */
  get paths(): string[] {
    return this.#files.paths;
  }

  take(event: StoredEvent): void {
    const { data, id, type } = event;
    if (type === "message") this.#message(id, data.message);
    else if (type === "permission.asked") this.#ask(id, data);
    else if (type === "permission.answered") this.#answer(data);
    else if (type === "notice") this.#notice(data);
    else if (type === "background.changed") {
      this.#background = data.tasks.length;
      this.#needsLook ||= data.tasks.length > 0;
    } else if (type === "verification.started") this.#needsLook = true;
    // A command or a skill can run shell commands before the first request, which the log does not tell.
    else if (type === "prompt.queued") this.#needsLook ||= data.text.trimStart().startsWith("/");
    // The last messages of a process can be lost with it.
    else if (type === "process.exited") this.#needsLook ||= !data.expected;
  }

  done(): TurnFacts {
    for (const call of this.#calls.values()) this.#add(call, undefined);
    this.#calls.clear();
    return {
      commands: [...this.#telling, ...this.#others].toSorted((a, b) => a.eventId - b.eventId),
      ran: { ...this.#ran },
      files: this.#files,
      requests: this.#requests,
      requestsOmitted: this.#requestCount - this.#requests.length,
      denied: this.#denied.size,
      background: this.#background,
      mcpTools: [...this.#mcpTools],
      hooks: [...this.#hooks],
    };
  }

  #message(eventId: number, message: JsonObject): void {
    const { subtype, type } = message;
    if (type === "assistant") this.#calling(eventId, message);
    else if (type === "user") this.#results(message);
    else if (type === "result") this.#denials(message["permission_denials"]);
    else if (subtype === "hook_response") this.#hook(message);
    else if (subtype === "task_started") this.#needsLook = true;
  }

  #calling(eventId: number, message: JsonObject): void {
    // Set for a command of Claude Code itself, such as a skill, which can run commands.
    if (message["local_command_source"] !== undefined) this.#needsLook = true;
    for (const block of blocksOf(message)) {
      const call = CallBlock.safeParse(block);
      if (!call.success) continue;
      const { id, input, name } = call.data;
      this.#needsLook = true;
      this.#ids.add(id);
      if (name.startsWith("mcp__")) addName(this.#mcpTools, name);
      // Keeps only the calls that the receipt lists, because inputs can be large.
      this.#calls.set(id, { eventId, tool: name, input: listedInput(name, input) });
    }
  }

  #results(message: JsonObject): void {
    const read = UserMessage.safeParse(message);
    if (!read.success) return;
    const { tool_result_meta: metas = [], tool_use_result: structured } = read.data;
    const results = read.data.message.content.flatMap((block) => OutcomeBlock.safeParse(block).data ?? []);
    for (const { content, is_error: isError = false, tool_use_id: id } of results) {
      this.#needsLook = true;
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      const meta = metas.map((each) => ResultMeta.safeParse(each).data).find((each) => each?.id === id);
      const hasRun = this.#hasRun(id, meta, isError && typeof content === "string" ? content : "");
      if (!call || !hasRun) continue;
      const isWhole = meta?.non_execution_kind === undefined && meta?.call_ended === undefined;
      // Claude Code gives one structured output for a message.
      const own = results.length === 1 ? structured : undefined;
      const changed = this.#changedInputs.get(id);
      this.#changedInputs.delete(id);
      this.#add(changed ? { ...call, input: changed } : call, { content, isError, structured: own, isWhole });
    }
  }

  /** Notes a denial. Returns false for a call that did not start. */
  #hasRun(id: string, meta: ResultMeta | undefined, error: string): boolean {
    const { call_ended: ended, non_execution_kind: kind = "", permission_decision: decided } = meta ?? {};
    const isRejected = decided?.decision === "reject" && !MAY_HAVE_RUN.test(kind);
    if (isRejected || REFUSED.test(kind)) this.#denied.add(id);
    return ended !== "not_started" && !this.#denied.has(id) && !error.startsWith("<tool_use_error>");
  }

  #add(call: Call, outcome: ToolOutcome | undefined): void {
    if (outcome) this.#files.note(call.tool, call.input, outcome);
    if (!SHELLS.has(call.tool)) return;
    const run = runOf(call, outcome);
    const hasFailed = run.exit !== "unknown" && run.exit !== 0;
    this.#ran.ran += 1;
    if (hasFailed) this.#ran.failed += 1;
    if (run.exit === "unknown") this.#ran.unknown += 1;
    const list = hasFailed || run.check !== undefined ? this.#telling : this.#others;
    list.push(run);
    if (list.length > KEPT) list.shift();
  }

  #ask(eventId: number, { requestId, toolUseId }: DataOf<"permission.asked">): void {
    this.#needsLook = true;
    this.#asked.set(requestId, { eventId, toolUseId });
  }

  #answer({ behavior, by, requestId, toolName, updatedInput }: DataOf<"permission.answered">): void {
    const asked = this.#asked.get(requestId);
    this.#asked.delete(requestId);
    if (!asked) return;
    this.#requestCount += 1;
    if (this.#requests.length < KEPT) this.#requests.push({ eventId: asked.eventId, toolName, behavior, by });
    // Claude Code has taken the question back, or the server has asked for itself.
    if (behavior === "deny" && by !== "withdrawn" && toolName !== VERIFICATION_TOOL) this.#denied.add(asked.toolUseId);
    if (updatedInput) this.#changedInputs.set(asked.toolUseId, listedInput(toolName, updatedInput));
  }

  #notice({ details, kind }: DataOf<"notice">): void {
    const denial = kind === "denial" ? DenialNotice.safeParse(details) : undefined;
    if (denial?.success) this.#denied.add(denial.data.tool_use_id);
  }

  #denials(denials: unknown): void {
    for (const { tool_use_id: id } of Denials.parse(denials)) if (this.#ids.has(id)) this.#denied.add(id);
  }

  #hook(message: JsonObject): void {
    this.#needsLook = true;
    const { hook_event: event, hook_name: name } = message;
    addName(this.#hooks, String(name ?? event));
  }
}

function blocksOf(message: JsonObject): readonly unknown[] {
  return Blocks.safeParse(message).data?.message.content ?? [];
}

const LISTED_FIELDS = ["command", "file_path", "notebook_path", "run_in_background"];

function listedInput(tool: string, input: JsonObject): JsonObject {
  const kept = Object.entries(input).filter(([key]) => LISTED_FIELDS.includes(key));
  return tool.startsWith("mcp__") ? {} : Object.fromEntries(kept);
}

function addName(names: Set<string>, name: string): void {
  if (names.size < MAX_NAMES) names.add(name.slice(0, 100));
}
