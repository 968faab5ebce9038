import { createHmac } from "node:crypto";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { inheritedTraits } from "./inherited.ts";
import { STORE_FILE } from "../config/store-spelling.ts";
import { buildId, readPackage } from "../config/version.ts";
import { keyFor } from "../security/key-file.ts";
import { realPathOf } from "../security/paths.ts";

interface Shared {
  readonly stateFolder: string;
  /** The file of the sessions, by its absolute path; by default that of the state folder. */
  readonly store?: string | undefined;
  /** Arguments of a server over HTTP, which is no daemon: the next one with the same goes on with its turns. */
  readonly argv?: readonly string[];
}

/**
 * The name of the daemon of all clients that have the same store, state folder, build and confinement. It is a digest under a key of
 * the state folder, so that nothing can be read off it. Throws where the state folder has no key that is the user's alone.
 */
export async function daemonName({
  argv,
  stateFolder,
  store = join(stateFolder, STORE_FILE),
}: Shared): Promise<string> {
  const key = await keyFor("socket-name", stateFolder);
  const places = [(await realPathOf(store)) ?? store, await realpath(stateFolder)];
  const shared = [...places, readPackage().version, buildId(), Object.entries(inheritedTraits()), argv ?? []];
  return createHmac("sha256", key).update(JSON.stringify(shared)).digest("hex").slice(0, 24);
}
