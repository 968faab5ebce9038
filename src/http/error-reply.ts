import type { AppError, ErrorCode } from "../domain/error.ts";

/** `outcome` is "ok" or the error code, for the audit log. */
export interface Reply {
  readonly outcome: "ok" | ErrorCode;
  readonly response: Response;
}

/** All other codes are conflicts with the current state (409). */
const HTTP_ERRORS: Partial<Readonly<Record<ErrorCode, { readonly status: number; readonly error: string }>>> = {
  INVALID_ARGUMENT: { status: 400, error: "invalid_request" },
  PERMISSION_DENIED: { status: 403, error: "not_allowed" },
  SESSION_NOT_FOUND: { status: 404, error: "not_found" },
  INTERNAL: { status: 503, error: "unavailable" },
};

export function refusalReply({ code, message }: AppError): Reply {
  const { error, status } = HTTP_ERRORS[code] ?? { status: 409, error: "conflict" };
  return errorReply(code, { status, error, message });
}

interface Refusal {
  readonly status: number;
  readonly error: string;
  readonly message: string;
}

/** `more` are further fields of the body. */
export function errorReply(code: ErrorCode, { error, message, status }: Refusal, more: object = {}): Reply {
  const headers: Record<string, string> = status === 503 ? { "retry-after": "1" } : {};
  const body = { error, code, message, ...more };
  return {
    outcome: code,
    response: Response.json(body, { status, headers: { "cache-control": "no-store", ...headers } }),
  };
}
