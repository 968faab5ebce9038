import type { SDKResultMessage } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";
import type { AgentResult, ResultFailure } from "../domain/turn.ts";

/**
 * Detects failures: Claude Code ends a blocked prompt, a failed command and a turn stopped by a hook with `subtype: "success"`
 * too. The messages before the result, and its `terminal_reason`, make the difference.
 */

/** Bounds for texts of hooks and commands in the state: characters of a text, number of warnings. */
const MAX_CHARS = 500;
const MAX_WARNINGS = 5;

/** Reasons of a finished turn. After an abort without an error, another result follows. */
const DONE = new Set(["completed", "background_requested", "aborted_streaming", "aborted_tools"]);
const BY_HOOK = new Set(["hook_stopped", "stop_hook_prevented"]);

/** `prompt_submit_outcome` is missing in the types of the SDK. Claude Code before 2.1.330 sends `prevent_continuation` only. */
const Informational = z.object({
  content: z.string(),
  level: z.string().optional(),
  prevent_continuation: z.boolean().optional(),
  prompt_submit_outcome: z.object({ kind: z.string(), reason: z.string().optional() }).optional().catch(undefined),
});

/** `local_command_outcome` is missing in the types of the SDK. The output of a failed command begins with `ERROR_OUTPUT`. */
const LocalCommand = z.object({
  local_command_source: z.string(),
  local_command_outcome: z.object({ kind: z.string() }).optional().catch(undefined),
});
const ERROR_OUTPUT = /^<local-command-stderr>([^]*?)(?:<\/local-command-stderr>)?$/;
const OUTPUT = /^<local-command-stdout>([^]*?)(?:<\/local-command-stdout>)?$/;

/** Captures the event of the hook. */
const BLOCKED_PROMPT = /^(\w+) operation blocked by hook:\s*/;
const STOPPED = /^Operation stopped by hook(?::\s*)?/;
/** Follows the reason. Dropped, because the caller knows the prompt. */
const ORIGINAL_PROMPT = /\s*\n\nOriginal prompt: [^]*$/;

const HOOK_CAP = /blocked the turn from ending/;

/** Reports since the last result. */
interface TurnReports {
  /** Stop by a hook; `event` is the hook event of a blocked prompt. */
  stop?: { readonly event: string | undefined; readonly reason: string };
  command?: { readonly failed: boolean; readonly output: string };
  isCompacted?: boolean;
  /** Last text of the main conversation. */
  lastText?: string;
  isCapped?: boolean;
  readonly warnings: string[];
  /** True if another server has read the beginning: reports missing here may have arrived there. */
  isPartial?: boolean;
}

type Verdict = Pick<AgentResult, "failure" | "isEmpty" | "text" | "warnings">;

/** Reads the messages of a process in order. */
export class SideReports {
  readonly #mask: (text: string) => string;
  readonly #expectsStructured: boolean;
  #reported: TurnReports = { warnings: [] };

  /** `mask` removes secrets, because failures and warnings go into the state. */
  constructor(mask: (text: string) => string, { expectsStructured }: { readonly expectsStructured: boolean }) {
    this.#mask = mask;
    this.#expectsStructured = expectsStructured;
  }

  /** `name` is the type of the message, with the subtype of a system message. */
  note(name: string, raw: JsonObject): void {
    if (name === "system/informational") this.#noteInformational(raw);
    if (name === "system/compact_boundary") this.#reported.isCompacted = true;
    if (name === "assistant") this.#noteAssistant(raw);
  }

  /** Adds a sentence for the caller to the next result. */
  warn(sentence: string | undefined): void {
    if (sentence !== undefined) this.#reported.warnings.push(sentence);
  }

  /** Notes a message already read by another server. */
  remember(name: string, raw: JsonObject): void {
    if (name === "result") this.#reported = { warnings: [] };
    else this.note(name, raw);
    this.#reported.isPartial = true;
  }

  /** Judges a result by the reports since the previous result. `text` is the result's own text. */
  judge(message: SDKResultMessage, text: string): Verdict {
    const reported = this.#reported;
    this.#reported = { warnings: [] };
    const warnings = this.#warningsOf(reported, message);
    const warned = warnings.length > 0 ? { warnings } : {};
    const failure = message.is_error ? undefined : this.#failureOf(reported, message, text);
    if (failure) return { ...warned, failure, text: message.num_turns === 0 ? "" : text };
    if (message.is_error) return { ...warned, text };
    // `lastText` has the answer, which Claude Code no longer finds after the feedback of a hook.
    const said = text === "" && reported.isCapped ? (reported.lastText ?? "") : text;
    const isEmpty = said.trim() === "" && message.num_turns > 0 && structuredOf(message) === undefined;
    return { ...warned, text: said, ...(isEmpty && { isEmpty }) };
  }

  #noteInformational(raw: JsonObject): void {
    const read = Informational.safeParse(raw);
    if (!read.success) return;
    const { content, level, prevent_continuation: isStop, prompt_submit_outcome: outcome } = read.data;
    if (HOOK_CAP.test(content)) this.#reported.isCapped = true;
    if (!isStop && !outcome) {
      if (level === "warning") this.#reported.warnings.push(this.#cut(content));
      return;
    }
    const [, named = "UserPromptSubmit"] = BLOCKED_PROMPT.exec(content) ?? [];
    const isBlocked = outcome ? outcome.kind === "blocked_by_hook" : BLOCKED_PROMPT.test(content);
    const said = content.replace(BLOCKED_PROMPT, "").replace(STOPPED, "").replace(ORIGINAL_PROMPT, "");
    const event = isBlocked ? named : undefined;
    this.#reported.stop = { event, reason: this.#cut(outcome?.reason ?? said) };
  }

  #noteAssistant(raw: JsonObject): void {
    if (raw["parent_tool_use_id"] === null)
      this.#reported.lastText = textIn(raw["message"]) ?? this.#reported.lastText ?? "";
    const command = LocalCommand.safeParse(raw);
    if (!command.success) return;
    const { local_command_outcome: outcome, local_command_source: source } = command.data;
    const [, error] = ERROR_OUTPUT.exec(source) ?? [];
    const output = error ?? OUTPUT.exec(source)?.[1] ?? source;
    this.#reported.command = { failed: outcome?.kind === "failed" || error !== undefined, output: this.#cut(output) };
  }

  #failureOf(reported: TurnReports, message: SDKResultMessage, text: string): ResultFailure | undefined {
    const { num_turns: turns, terminal_reason: reason } = message;
    const { stop } = reported;
    if (reason !== undefined && BY_HOOK.has(reason)) return hookStopped(stop?.reason);
    if (turns === 0 && stop) return promptBlocked(stop) ?? hookStopped(stop.reason);
    if (reason !== undefined && !DONE.has(reason))
      return { subtype: reason, category: "unknown", message: `Claude Code ended the turn early (${reason}).` };
    const command = "local_command" in message ? message.local_command : undefined;
    if (turns === 0) return commandFailed(reported, command, this.#cut(text));
    if (!this.#expectsStructured || structuredOf(message) !== undefined) return undefined;
    return NO_STRUCTURED_OUTPUT;
  }

  #warningsOf({ stop, warnings }: TurnReports, { num_turns: turns, stop_reason: reason }: SDKResultMessage): string[] {
    // The turn continued without a prompt meant to join.
    const refused =
      stop && turns > 0 ? (promptBlocked(stop)?.message ?? PROMPT_STOPPED + reasonSuffix(stop.reason)) : "";
    const paused = reason === "pause_turn" ? PAUSED : "";
    return [...new Set([refused, paused, ...warnings])].filter((warning) => warning !== "").slice(0, MAX_WARNINGS);
  }

  #cut(text: string): string {
    const masked = this.#mask(text.trim());
    return masked.length > MAX_CHARS ? `${masked.slice(0, MAX_CHARS - 1)}…` : masked;
  }
}

function promptBlocked({ event, reason }: NonNullable<TurnReports["stop"]>): ResultFailure | undefined {
  if (event === undefined) return undefined;
  const message = `A hook (${event}) blocked the prompt, which Claude has not seen${reasonSuffix(reason)}`;
  return { subtype: "prompt_blocked", category: "request", message };
}

/** Message about a prompt meant to join a turn. */
const PROMPT_STOPPED = "A hook stopped a prompt, which Claude has not answered";

export function hookStopped(reason = ""): ResultFailure {
  const message = `A hook ended the turn${reasonSuffix(reason.slice(0, MAX_CHARS))}`;
  return { subtype: "hook_stopped", category: "configuration", message };
}

function commandFailed(
  { command, isCompacted = false, isPartial = false }: TurnReports,
  name: string | undefined,
  text: string,
): ResultFailure | undefined {
  const isUncompacted = name === "compact" && !isCompacted && !isPartial;
  if (command?.failed !== true && !isUncompacted) return undefined;
  const output = (command?.output ?? text) || text;
  const message = `${name === undefined ? "The command" : `/${name}`} failed${reasonSuffix(output)}`;
  return { subtype: "command_failed", category: "request", message };
}

/** Claude Code does not continue by itself. */
const PAUSED = "Claude paused in its answer (pause_turn), which may be incomplete. Ask it to go on.";

const NO_STRUCTURED_OUTPUT: ResultFailure = {
  subtype: "structured_output_missing",
  category: "unknown",
  message: "Claude ended the turn without the structured output that outputFormat asks for.",
};

function reasonSuffix(reason: string): string {
  return reason === "" ? "." : `: ${reason.replace(/[.\s]*$/, ".")}`;
}

function structuredOf(message: SDKResultMessage): unknown {
  return message.subtype === "success" ? message.structured_output : undefined;
}

const Texts = z.object({ content: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })) });

function textIn(message: unknown): string | undefined {
  const read = Texts.safeParse(message);
  const texts = read.success
    ? read.data.content.flatMap(({ text, type }) => (type === "text" ? (text ?? []) : []))
    : [];
  return texts.length === 0 ? undefined : texts.join("\n");
}
