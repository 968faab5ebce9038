/** Reasons for which a client has no daemon. */

/** The daemon will not serve this connection, and says why. */
export class RefusedError extends Error {}

/** The client's own settings, or the lack of the daemon that they name, keep it from being served. The message is for its user. */
export class SettingsError extends RefusedError {}

export class AbsentError extends Error {
  constructor(cause: unknown) {
    super("no daemon of this name runs", { cause });
  }
}

export function whyOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
