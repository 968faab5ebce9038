import { dirname } from "node:path";
import { readDepth } from "../config/load.ts";
import { depthAbove } from "../security/ancestors.ts";
import { ConfigError } from "../config/error.ts";
import { networkKindOf } from "../config/network-path.ts";
import type { Config } from "../config/schema.ts";
import { stateFolder } from "../config/state-folder.ts";
import { defaultStore, storeTraits } from "../config/store.ts";

/** How deep this process is nested in sessions: by its environment, or by an ancestor's where its own was emptied (`env -i`). */
export function nestingDepth(): number {
  return Math.max(readDepth(process.env), depthAbove(process.pid));
}

/** Before anything is served: where sessions are to run in a sandbox there must be one. Throws ConfigError. */
export async function requireSandbox({ sandbox }: Config, environment: NodeJS.ProcessEnv): Promise<void> {
  if (sandbox !== "required") return;
  const { sandboxProblem } = await import("../security/sandbox.ts");
  const problem = await sandboxProblem(environment);
  if (problem !== undefined) throw new ConfigError(`--sandbox required: no sandbox is available. ${problem}`);
}

/** SQLite needs locks and memory that processes share, which such a file system does not have. Throws ConfigError. */
export async function refuseNetworkStore(
  { store }: Pick<Config, "store">,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const { platform } = process;
  const { file } = storeTraits(store ?? defaultStore(stateFolder(environment, platform), platform));
  if (file === undefined) return;
  const folder = dirname(file);
  const kind = await networkKindOf(folder);
  if (kind === undefined) return;
  const problem = `The store would be in ${folder}, on a network file system (${kind}), where SQLite cannot keep it safely`;
  throw new ConfigError(`${problem}. Name a file on a local disk with --store.`);
}

/** What confines the sessions, for the log. */
export function confinedBy({ sandbox }: Config): string {
  if (sandbox === "off") return "sessions run in Claude Code's sandbox only where they ask for it (--sandbox off)";
  return "every session runs in Claude Code's sandbox (--sandbox required)";
}
