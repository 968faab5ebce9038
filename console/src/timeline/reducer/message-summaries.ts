import type { JsonObject } from "../../../../src/domain/json.ts";
import { numberAt, textAt } from "../../parts/json.ts";
import type { Summary } from "./summaries.ts";

/**
 * Summarizes a message of Claude Code, or a content block, that is neither conversation nor use of a tool. Shows an unknown
 * kind by its type, because Claude Code adds kinds.
 */
export function summaryOfMessage(message: JsonObject): Summary {
  const name = textAt(message, "subtype") ?? textAt(message, "type") ?? "message";
  const words = Object.hasOwn(WORDS, name) ? WORDS[name]?.(message) : undefined;
  return { tone: toneOf(message), text: words ?? `Claude Code: ${name.replaceAll("_", " ")}`, more: message };
}

type Summarizer = (message: JsonObject) => string | undefined;

const WORDS: Readonly<Record<string, Summarizer>> = {
  init: (message) => {
    const tools = message["tools"];
    const count = Array.isArray(tools) ? `, ${String(tools.length)} tools` : "";
    return `Claude Code is ready: ${textAt(message, "model") ?? "unknown model"}${count}`;
  },
  // Messages to Claude Code that no user typed: interruptions, prompts of subagents.
  text: (block) => `Sent to Claude Code: ${textAt(block, "text") ?? ""}`,
  image: () => "An image",
  redacted_thinking: () => "Redacted thinking",
  task_started: (message) => `Task began: ${textAt(message, "description") ?? ""}`,
  task_progress: (message) => textAt(message, "summary"),
  task_notification: (message) =>
    `Task ${textAt(message, "status") ?? "ended"}: ${textAt(message, "summary") ?? "without a summary"}`,
  hook_response: (message) => {
    const code = numberAt(message, "exit_code");
    const exit = code === undefined ? "" : ` (exit ${String(code)})`;
    return `Hook ${textAt(message, "hook_name") ?? ""}: ${textAt(message, "outcome") ?? "ended"}${exit}`;
  },
  informational: (message) => textAt(message, "content"),
  local_command_output: (message) => textAt(message, "content"),
  tool_use_summary: (message) => textAt(message, "summary"),
  prompt_suggestion: (message) => `Suggested next: ${textAt(message, "suggestion") ?? ""}`,
};

function toneOf(message: JsonObject): Summary["tone"] {
  if (message["level"] === "warning" || textAt(message, "error") !== undefined) return "warn";
  return message["status"] === "failed" || message["outcome"] === "error" ? "warn" : "quiet";
}
