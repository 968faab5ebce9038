/** Reasons for having no daemon. */

/** No daemon will serve this connection, so the proxy stops trying. `message` has the reason. */
export class RefusedError extends Error {}

/** Only other settings, or another build, would help: no server can serve this client. `message` is for the user. */
export class SettingsError extends RefusedError {}

export class AbsentError extends Error {
  constructor(cause: unknown) {
    super("no daemon of this name runs", { cause });
  }
}

export function whyOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
