import { randomBytes } from "node:crypto";
import { AppError, type ErrorCode } from "../domain/error.ts";
import type { JsonObject } from "../domain/json.ts";
import { cutText } from "../view/size.ts";
import { namesOf, type ToolName } from "./listed.ts";

/** What leaves a tool: the same in words for clients that read text, and as data for those that read that. */
export interface ToolReply {
  readonly text: string;
  /** Further blocks of text. */
  readonly more?: readonly string[];
  readonly structured: JsonObject;
  readonly isError: boolean;
  /** For the audit log. */
  readonly outcome?: string;
  /** Given where it goes on as a task. */
  readonly task?: TaskHead;
}

/** How a task stands. */
export interface TaskHead {
  readonly taskId: string;
  /** Where it runs: what every other tool takes. */
  readonly sessionId: string;
  readonly status: "working" | "input_required" | "completed" | "cancelled";
  /** ISO 8601. */
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly statusMessage: string;
}

/** Tells the operator of a fault of ours, under the id that the caller is given. */
export type ReportFault = (id: string, error: unknown) => void;

export function replyWith({
  answer: structured,
  isError = false,
  outcome,
  task,
  words,
}: {
  answer: JsonObject;
  isError?: boolean;
  outcome?: string;
  task?: TaskHead;
  words?: readonly [string, ...string[]];
}): ToolReply {
  const [text, ...more] = words ?? [JSON.stringify(structured)];
  const about = { ...(outcome !== undefined && { outcome }), ...(task && { task }) };
  return { text, ...(more.length > 0 && { more }), structured, isError, ...about };
}

/**
 * What a caller can act upon is said as it is. Anything else is a fault of ours, whose words may hold anything: the
 * caller gets an id to ask about, the log the rest.
 */
export function replyWithError(error: unknown, report: ReportFault, call: FailedCall = {}): ToolReply {
  const { code, message, sessionId } = asAppError(error, report, call.listed);
  const text = `Error [${code}]: ${message}`;
  const about = sessionId ?? call.sessionId;
  const structured = { isError: true, error: text, code, ...(about !== undefined && { sessionId: about }) };
  return { text, structured, isError: true };
}

interface FailedCall {
  readonly sessionId?: string | undefined;
  readonly listed?: readonly ToolName[];
}

/** Given what is listed, advice names no other tools. */
export function asAppError(error: unknown, report: ReportFault, listed?: readonly ToolName[]): AppError {
  if (!(error instanceof AppError)) return fault(error, report);
  const { code, message, sessionId } = error;
  const shown = cutText(listed ? adviceWithin(code, message, listed) : message, MESSAGE_BYTES);
  return shown === message ? error : new AppError(code, shown, { ...(sessionId !== undefined && { sessionId }) });
}

/** What is wrong is often said with the words of the caller, of which a message may hold a megabyte. */
const MESSAGE_BYTES = 8_192;

function fault(error: unknown, report: ReportFault): AppError {
  const id = randomBytes(4).toString("hex");
  report(id, error);
  return new AppError(
    "INTERNAL",
    `The server failed (fault ${id}). Try again; the server's log has details under that id.`,
  );
}

/**
 * Advice is written for servers that list every tool. A sentence after the first that names a tool which this server does not
 * list is replaced by one that names a listed tool, or removed. The first sentence says what is wrong, and stays.
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
