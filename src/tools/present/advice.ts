import type { ErrorCode } from "../../domain/error.ts";
import { namesOf, type ToolName } from "../listed.ts";

/**
 * Advice is written for whoever has every tool. A sentence behind the first that names a tool which this server does not
 * list gives way to one that names what is there, or to none. The first says what is wrong, and stays.
 */
export function adviceWithin(code: ErrorCode, message: string, listed: readonly ToolName[]): string {
  const missing = ALL.filter((name) => !listed.includes(name));
  const [problem = "", ...advice] = message.split(/(?<=[.!?]) (?=[A-Z])/u);
  const kept = advice.filter((sentence) => !namesIn(sentence).some((name) => missing.includes(name)));
  if (kept.length === advice.length) return message;
  const instead = INSTEAD[code]?.find(([name]) => listed.includes(name))?.[1];
  return [problem, ...kept, ...(instead === undefined ? [] : [instead])].join(" ");
}

const ALL = namesOf(["all"], { enabled: true });

const INSTEAD: Partial<Record<ErrorCode, readonly (readonly [ToolName, string])[]>> = {
  CANCELLED: [
    ["claude_session_create", "Open another with claude_session_create."],
    ["claude_code_query", "Start another with claude_code_query."],
  ],
  SESSION_BUSY: [["claude_chat_interrupt", "Wait for its reply, or end it with claude_chat_interrupt."]],
  SESSION_NOT_FOUND: [
    ["claude_session_create", "Open one with claude_session_create."],
    ["claude_code_query", "Start one with claude_code_query."],
  ],
};

function namesIn(sentence: string): ToolName[] {
  const words = new Set(sentence.match(/claude_[a-z_]+/gu));
  return ALL.filter((name) => words.has(name));
}
