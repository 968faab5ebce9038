import { escapeControlChars } from "../security/control-chars.ts";

/**
 * Thrown if a setting cannot be used. The message is a single line for the operator: source of the value, then allowed values.
 */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(message: string, cause?: unknown) {
    super(escapeControlChars(message.replaceAll(/\s+/g, " ")), { cause });
  }
}
