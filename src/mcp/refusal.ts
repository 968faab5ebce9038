import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from "@modelcontextprotocol/server";
import type { AppError } from "../domain/error.ts";

/** Converts a refused request for a resource into a protocol error. */
export function refusal(uri: string, { code, message }: AppError): ProtocolError {
  const text = textOf({ code, message });
  if (code === "SESSION_NOT_FOUND") return new ResourceNotFoundError(uri, text);
  return new ProtocolError(numberOf(code), text, { uri, code });
}

/** Converts any other refusal into a protocol error. */
export function refusalOf({ code, message }: AppError): ProtocolError {
  return new ProtocolError(numberOf(code), textOf({ code, message }), { code });
}

function textOf({ code, message }: Pick<AppError, "code" | "message">): string {
  return `Error [${code}]: ${message}`;
}

function numberOf(code: AppError["code"]): ProtocolErrorCode {
  return code === "INTERNAL" || code === "TIMEOUT" ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams;
}
