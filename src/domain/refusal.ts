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
