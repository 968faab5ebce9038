import { z } from "zod";

/** Error codes. Part of the wire contract: never rename one. */
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

/** Refusal as data: the answer to a command, also across processes. */
export const Refusal = z.object({ code: ErrorCode, message: z.string() });
export type Refusal = z.infer<typeof Refusal>;
