import { randomBytes } from "node:crypto";
import { AppError, type ErrorCode } from "../domain/error.ts";
import type { JsonObject } from "../domain/json.ts";
import { cutText } from "../view/size.ts";
import { listToolNames, type ToolName } from "./tool-names.ts";

/** Reply of a tool: `text` for clients that read text, `structured` with equal content for clients that read data. */
export interface ToolReply {
  readonly text: string;
  /** Further text blocks. */
  readonly more?: readonly string[];
  readonly structured: JsonObject;
  readonly isError: boolean;
  /** Outcome for the audit log. */
  readonly outcome?: string;
  /** Set if the work continues as a task. */
  readonly task?: TaskHead;
}

/** State of a task. */
export interface TaskHead {
  readonly taskId: string;
  /** Session in which the task runs, for the `sessionId` of every tool. */
  readonly sessionId: string;
  readonly status: "working" | "input_required" | "completed" | "cancelled";
  /** ISO 8601. */
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly statusMessage: string;
}

/** Logs an internal error for the operator, under the id given to the caller. */
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
 * Passes on the message of an `AppError`, because the caller can act on it. The message of any other error may contain secrets:
 * the caller gets an id to report, the log the details.
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

/** Converts any error. If `listed` is given, advice names only listed tools. */
export function asAppError(error: unknown, report: ReportFault, listed?: readonly ToolName[]): AppError {
  if (!(error instanceof AppError)) return internalError(error, report);
  const { code, message, sessionId } = error;
  const shown = cutText(listed ? adaptAdvice(code, message, listed) : message, MESSAGE_BYTES);
  return shown === message ? error : new AppError(code, shown, { ...(sessionId !== undefined && { sessionId }) });
}

/** Maximum size of a message, bytes. Messages quote the caller, and the caller's texts may have a megabyte. */
const MESSAGE_BYTES = 8_192;

function internalError(error: unknown, report: ReportFault): AppError {
  const id = randomBytes(4).toString("hex");
  report(id, error);
  return new AppError(
    "INTERNAL",
    `The server failed (fault ${id}). Try again; the server's log has details under that id.`,
  );
}

/**
 * Adapts advice to the listed tools, because messages are written for servers with all tools. A later sentence naming an
 * unlisted tool is replaced by one naming a listed tool, or removed. The first sentence states the problem and stays.
 */
export function adaptAdvice(code: ErrorCode, message: string, listed: readonly ToolName[]): string {
  const missing = ALL.filter((name) => !listed.includes(name));
  const [problem = "", ...advice] = message.split(/(?<=[.!?]) (?=[A-Z])/u);
  const kept = advice.filter((sentence) => !namesIn(sentence).some((name) => missing.includes(name)));
  if (kept.length === advice.length) return message;
  const instead = ADVICE_BY_CODE[code]?.find(([name]) => listed.includes(name))?.[1];
  return [problem, ...kept, ...(instead === undefined ? [] : [instead])].join(" ");
}

const ALL = listToolNames(["all"], { enabled: true });

const ADVICE_BY_CODE: Partial<Record<ErrorCode, readonly (readonly [ToolName, string])[]>> = {
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
