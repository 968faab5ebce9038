import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from "@modelcontextprotocol/server";
import type { AppError } from "../domain/error.ts";

/** Converts a refused request for a resource into a protocol error. */
export function resourceError(uri: string, { code, message }: AppError): ProtocolError {
  const text = errorText({ code, message });
  if (code === "SESSION_NOT_FOUND") return new ResourceNotFoundError(uri, text);
  return new ProtocolError(protocolCode(code), text, { uri, code });
}

/** Converts any other refusal into a protocol error. */
export function toProtocolError({ code, message }: AppError): ProtocolError {
  return new ProtocolError(protocolCode(code), errorText({ code, message }), { code });
}

function errorText({ code, message }: Pick<AppError, "code" | "message">): string {
  return `Error [${code}]: ${message}`;
}

function protocolCode(code: AppError["code"]): ProtocolErrorCode {
  return code === "INTERNAL" || code === "TIMEOUT" ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams;
}
