import { z } from "zod";

/** Codes of seeds 001 and 002. They are part of the wire contract: never rename one. */
export const ErrorCode = z.enum([
  "INVALID_ARGUMENT",
  "SESSION_NOT_FOUND",
  "SESSION_BUSY",
  "PERMISSION_DENIED",
  "PERMISSION_REQUEST_NOT_FOUND",
  "TIMEOUT",
  "CANCELLED",
  "INTERNAL",
]);
export type ErrorCode = z.infer<typeof ErrorCode>;

/** A refusal as data: what a command is answered with, also across processes. */
export const Refusal = z.object({ code: ErrorCode, message: z.string() });
export type Refusal = z.infer<typeof Refusal>;

/**
 * What a caller can act upon. The message says what is wrong and then what to do; it is shown to the caller as it is,
 * so it never holds secrets. Everything else that is thrown is a fault of ours and becomes INTERNAL at the edge.
 */
export class AppError extends Error {
  override readonly name = "AppError";
  readonly code: ErrorCode;
  readonly sessionId: string | undefined;

  constructor(code: ErrorCode, message: string, details: { sessionId?: string; cause?: unknown } = {}) {
    super(message, { cause: details.cause });
    this.code = code;
    this.sessionId = details.sessionId;
  }
}

export function invalidArgument(field: string, problem: string): AppError {
  return new AppError("INVALID_ARGUMENT", `${field}: ${problem}`);
}

export function sessionNotFound(sessionId: string): AppError {
  const advice = "List the sessions with claude_code_session (action: list), or start one with claude_code.";
  return new AppError("SESSION_NOT_FOUND", `There is no session ${sessionId}. ${advice}`, { sessionId });
}
