import type { Logger } from "../engine/ports.ts";

interface KeyUse {
  readonly purpose: "protocol-session" | "request-state";
  readonly stateFolder: string;
  /** Consequence of an unusable key file, for the log: `open forms are lost`. */
  readonly lost: string;
  readonly log: Pick<Logger, "warn">;
}

/**
 * Returns the key for `purpose` from the state folder. If the key file is unusable, returns a random key, valid for this
 * process only.
 */
export async function signingKey({ log, lost, purpose, stateFolder }: KeyUse): Promise<Uint8Array> {
  const { keyFor } = await import("../security/key-file.ts");
  try {
    return await keyFor(purpose, stateFolder);
  } catch (error) {
    log.warn(`the key of the state folder cannot be used: ${lost} when this process ends`, { error: String(error) });
    return crypto.getRandomValues(new Uint8Array(32));
  }
}
