import type { Logger } from "../engine/ports.ts";

interface KeyUse {
  readonly purpose: "protocol-session" | "request-state";
  readonly stateFolder: string;
  /** Until this process ends, without a key file. */
  readonly lost: string;
  readonly log: Pick<Logger, "warn">;
}

/** Makes the key for `purpose`. Where that of the state folder cannot be used, what is signed is good for this process alone. */
export async function signingKey({ log, lost, purpose, stateFolder }: KeyUse): Promise<Uint8Array> {
  const { keyFor } = await import("../security/key-file.ts");
  try {
    return await keyFor(purpose, stateFolder);
  } catch (error) {
    log.warn(`the key of the state folder cannot be used: ${lost} when this process ends`, { error: String(error) });
    return crypto.getRandomValues(new Uint8Array(32));
  }
}
