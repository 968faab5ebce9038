import { createHmac } from "node:crypto";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { inheritedTraits } from "./inherited-traits.ts";
import { isStorePath, STORE_FILE } from "../config/store-spelling.ts";
import { buildId, readPackage } from "../config/version.ts";
import { keyFor } from "../security/key-file.ts";
import { findRealPath } from "../security/paths.ts";

interface NameInputs {
  readonly stateFolder: string;
  /** Value of `--store`, with an absolute path. Default: `STORE_FILE` in `stateFolder`. */
  readonly store?: string | undefined;
  /** Arguments of a server over HTTP (no daemon), so that the next server with equal arguments goes on with its turns. */
  readonly argv?: readonly string[];
}

/**
 * Returns the name of the daemon of all clients with equal store, state folder, build and confinement. A digest under a key of
 * the state folder, so that the name reveals nothing. Throws if the key is not private to the user.
 */
export async function daemonName({
  argv,
  stateFolder,
  store = join(stateFolder, STORE_FILE),
}: NameInputs): Promise<string> {
  const key = await keyFor("socket-name", stateFolder);
  const real = isStorePath(store) ? await findRealPath(store) : undefined;
  const places = [real ?? store, await realpath(stateFolder)];
  const shared = [...places, readPackage().version, buildId(), Object.entries(inheritedTraits()), argv ?? []];
  return createHmac("sha256", key).update(JSON.stringify(shared)).digest("hex").slice(0, 24);
}
