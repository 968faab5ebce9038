/** Faults of the scripted model, and errors in the API's shape. */
import type { ServerResponse } from "node:http";

import { planHeaders, type Plan } from "./plan.ts";
import { freshId, type StreamEvent } from "./stream.ts";

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
};

/** Error of the API in a script. `type` and `message` have defaults. */
export interface ErrorAnswer {
  readonly status: number;
  readonly type?: string | undefined;
  readonly message?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly plan?: Plan | undefined;
}

/** Answers with an error in Anthropic's shape. */
export function sendError(response: ServerResponse, error: ErrorAnswer): void {
  const type = error.type ?? ERROR_TYPES[error.status] ?? "api_error";
  const message = error.message ?? `Scripted ${type}`;
  const requestId = freshId("req");
  response.writeHead(error.status, {
    "content-type": "application/json",
    "request-id": requestId,
    ...(error.retryAfterSeconds === undefined ? {} : { "retry-after": String(error.retryAfterSeconds) }),
    ...planHeaders(error.plan, "rejected"),
  });
  response.end(JSON.stringify({ type: "error", error: { type, message }, request_id: requestId }));
}

/** Takes the place of an event; no JSON parser accepts it. */
export const GARBAGE = 'event: content_block_delta\ndata: {"type":"content_block_delta", oops\n\n';

/** Returns the events before a fault in mid-stream: up to the first delta, or else only the start of the message. */
export function headOf(events: readonly StreamEvent[]): readonly StreamEvent[] {
  return events.slice(0, events.findIndex((event) => event.type === "content_block_delta") + 1 || 1);
}

/** Never resolves. Rejects when the client leaves or the server closes. */
export async function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => reject(signal.reason instanceof Error ? signal.reason : new Error("the hang ended"));
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}
