import { ProtocolError } from "@modelcontextprotocol/server";
import type { JsonObject } from "../../domain/json.ts";
import { asAppError, type ReportFault } from "../../tools/errors.ts";
import { toProtocolError } from "../protocol-errors.ts";

/** Error codes of the Events extension, with the numbers that its clients have taken over. */
const CODES = {
  NotFound: -32_011,
  Forbidden: -32_012,
  ResourceExhausted: -32_013,
  Unsupported: -32_014,
  CallbackEndpointError: -32_015,
} as const;

/** `data` tells the cases of one code apart. */
export function eventError(kind: keyof typeof CODES, message: string, data: JsonObject = {}): ProtocolError {
  return new ProtocolError(CODES[kind], `${kind}: ${message}`, data);
}

/** Converts the failure of a request. Arguments that cannot be used are -32602, faults of this server -32603. */
export function toEventError(error: unknown, report: ReportFault): ProtocolError {
  if (error instanceof ProtocolError) return error;
  const known = asAppError(error, report);
  if (known.code === "SESSION_NOT_FOUND") return eventError("NotFound", known.message, { kind: "session" });
  return known.code === "PERMISSION_DENIED" ? eventError("Forbidden", known.message) : toProtocolError(known);
}
