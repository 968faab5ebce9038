import type { AppError, ErrorCode } from "../domain/error.ts";
import { refuse } from "./guards.ts";

/** What the engine refuses, as an answer over HTTP. */

/** "ok", or the word of the refusal, and what is sent. */
export interface Reply {
  readonly outcome: string;
  readonly response: Response;
}

/** Whatever is not here is a conflict with what is true now. */
const WORDS: Partial<Readonly<Record<ErrorCode, { readonly status: number; readonly error: string }>>> = {
  INVALID_ARGUMENT: { status: 400, error: "invalid_request" },
  PERMISSION_DENIED: { status: 403, error: "not_allowed" },
  SESSION_NOT_FOUND: { status: 404, error: "not_found" },
  INTERNAL: { status: 503, error: "unavailable" },
};

export function problemOf({ code, message }: AppError): Reply {
  const { error, status } = WORDS[code] ?? { status: 409, error: "conflict" };
  return refused(status, error, message, status === 503 ? { "Retry-After": "1" } : {});
}

export function refused(status: number, error: string, message: string, headers: Record<string, string> = {}): Reply {
  return { outcome: error, response: refuse(status, error, message, headers) };
}
