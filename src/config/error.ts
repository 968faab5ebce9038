import { escapeControlChars } from "../security/control-chars.ts";

/** A setting that cannot be used. The message is one line for the operator: where the value came from, what is allowed. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(message: string, cause?: unknown) {
    super(escapeControlChars(message.replaceAll(/\s+/g, " ")), { cause });
  }
}
