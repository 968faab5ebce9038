import type { ErrorCode } from "./refusal.ts";

export type { ErrorCode, Refusal } from "./refusal.ts";

/** Errors, apart from their schemas in `refusal.ts`, because a proxy does not load schemas. */

/**
 * Error that a caller can act upon. `message` names the problem, then the remedy. Callers see `message` unchanged, so it never
 * holds secrets. Any other thrown error is a bug and becomes `INTERNAL` at the edge.
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
