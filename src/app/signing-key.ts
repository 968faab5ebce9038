import type { Logger, StoreMachines } from "../engine/ports.ts";

interface KeyUse {
  readonly purpose: "protocol-session" | "request-state";
  /** Part of the store with the key, if several machines share it. */
  readonly machines: Pick<StoreMachines, "key"> | undefined;
  readonly stateFolder: string;
  /** Consequence of an unusable key file, for the log: `open forms are lost`. */
  readonly lost: string;
  readonly log: Pick<Logger, "warn">;
}

/**
 * Returns the key for `purpose`: of the store if several machines share it, because a client may come back to another machine,
 * otherwise of the state folder. If the key file is unusable, returns a random key, valid for this process only.
 */
export async function signingKey({ log, lost, machines, purpose, stateFolder }: KeyUse): Promise<Uint8Array> {
  if (machines) return machines.key(purpose);
  const { keyFor } = await import("../security/key-file.ts");
  try {
    return await keyFor(purpose, stateFolder);
  } catch (error) {
    log.warn(`the key of the state folder cannot be used: ${lost} when this process ends`, { error: String(error) });
    return crypto.getRandomValues(new Uint8Array(32));
  }
}
