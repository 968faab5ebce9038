import { dirname } from "node:path";
import { readDepth } from "../config/load.ts";
import { depthAbove } from "../security/ancestors.ts";
import { ConfigError } from "../config/error.ts";
import { findNetworkKind } from "../config/network-path.ts";
import type { Config } from "../config/schema.ts";
import { stateFolder } from "../config/state-folder.ts";
import { defaultStore, storeTraits } from "../config/store.ts";

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

/** Describes the confinement of sessions, for the log. */
export function describeConfinement({ sandbox }: Config): string {
  if (sandbox === "off") return "sessions run in Claude Code's sandbox only where they ask for it (--sandbox off)";
  return "every session runs in Claude Code's sandbox (--sandbox required)";
}
