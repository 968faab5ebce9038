import { dirname } from "node:path";
import { readDepth, readGiven } from "../config/load.ts";
import { depthAbove } from "../security/ancestors.ts";
import { ConfigError } from "../config/error.ts";
import { findNetworkKind } from "../config/network-path.ts";
import { labelsOf, nodeFields } from "../config/nodes.ts";
import type { Config } from "../config/schema.ts";
import { stateFolder } from "../config/state-folder.ts";
import { defaultStore, isOfMachines, storeTraits } from "../config/store.ts";
import type { SharedFolder } from "../domain/place.ts";
import { realpath } from "../security/files/limited.ts";
import { MARKER_FILE, markerProblem, readMarker } from "../security/files/volume-marker.ts";
import { isInside } from "../security/paths.ts";

/** Returns the nesting depth in sessions: from the environment, or from an ancestor's if the own one was emptied (`env -i`). */
export function nestingDepth(): number {
  return Math.max(readDepth(process.env), depthAbove(process.pid));
}

/** Throws ConfigError if `--sandbox required` is set and no sandbox is available. Call before serving. */
export async function requireSandbox({ sandbox }: Config, environment: NodeJS.ProcessEnv): Promise<void> {
  if (sandbox !== "required") return;
  const { sandboxProblem } = await import("../security/sandbox.ts");
  const problem = await sandboxProblem(environment);
  if (problem !== undefined) throw new ConfigError(`--sandbox required: no sandbox is available. ${problem}`);
}

/** Throws ConfigError for a store on a network file system, because SQLite needs locks and shared memory. */
export async function refuseNetworkStore(
  { store }: Pick<Config, "store">,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const { platform } = process;
  const { file } = storeTraits(store ?? defaultStore(stateFolder(environment, platform), platform));
  if (file === undefined) return;
  const folder = dirname(file);
  const kind = await findNetworkKind(folder);
  if (kind === undefined) return;
  const problem = `The store would be in ${folder}, on a network file system (${kind}), where SQLite cannot keep it safely`;
  throw new ConfigError(`${problem}. Name a file on a local disk with --store.`);
}

/**
 * Returns the shared folders of this server, by real paths. Throws ConfigError for settings of nodes that cannot be used: on a
 * store of one machine, a label with two values, a shared folder without its marker.
 */
export async function checkNodeSettings(
  config: Pick<Config, "labels" | "sharedFolders" | "store">,
  { argv, env }: { readonly argv: readonly string[]; readonly env: NodeJS.ProcessEnv },
): Promise<SharedFolder[]> {
  if (config.store && isOfMachines(config.store)) {
    labelsOf(config);
    return findSharedFolders(config.sharedFolders);
  }
  // Ignores the user's file, which is also for servers on other stores.
  const given = readGiven({ argv, env });
  const from = Object.keys(nodeFields).flatMap((key) => given.get(key)?.from ?? []);
  if (from.length === 0) return [];
  const advice = "Name a store of several machines with --store postgres://HOST/DATABASE, or leave it out.";
  throw new ConfigError(`${from.join(", ")}: this store belongs to one machine. ${advice}`);
}

/** Throws ConfigError for a folder without a readable marker, and for folders that cannot be told apart. */
export async function findSharedFolders(paths: readonly string[]): Promise<SharedFolder[]> {
  const folders = await Promise.all(paths.map(readSharedFolder));
  refuseAmbiguous(folders);
  return folders;
}

async function readSharedFolder(path: string): Promise<SharedFolder> {
  const problem = (text: string) => new ConfigError(`--shared-folder ${path}: ${text}`);
  const share = `Is it mounted? To share it for the first time: claude-agents-mcp nodes share ${path}`;
  try {
    const folder = await realpath(path);
    const volume = await readMarker(folder);
    if (volume !== undefined) return { folder, volume };
  } catch (error) {
    throw problem(`its marker cannot be read (${markerProblem(error)}). Mount the folder, or mend the file.`);
  }
  throw problem(`there is no marker of a shared folder. ${share}`);
}

/** Throws ConfigError for two folders with the same marker, and for one inside another. */
function refuseAmbiguous(folders: readonly SharedFolder[]): void {
  for (const [at, one] of folders.entries()) {
    for (const other of folders.slice(at + 1)) {
      const two = `--shared-folder: ${one.folder} and ${other.folder}`;
      if (isInside(one.folder, other.folder) || isInside(other.folder, one.folder))
        throw new ConfigError(`${two} contain one another. Name the outer one only.`);
      if (one.volume !== other.volume) continue;
      const advice = `Name one of them; if one is a copy, delete ${MARKER_FILE} in it and share it anew.`;
      throw new ConfigError(`${two} have the same marker. ${advice}`);
    }
  }
}

/** Describes the confinement of sessions, for the log. */
export function describeConfinement({ sandbox }: Config): string {
  if (sandbox === "off") return "sessions run in Claude Code's sandbox only where they ask for it (--sandbox off)";
  return "every session runs in Claude Code's sandbox (--sandbox required)";
}
