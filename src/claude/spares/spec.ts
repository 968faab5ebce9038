import type { ClaimOptions, Options } from "@anthropic-ai/claude-agent-sdk";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { stat } from "../../security/files/limited.ts";
import { type OptionsWith, traitsOf } from "../../domain/options/traits.ts";
import type { Principal } from "../../domain/principal.ts";
import { readSmall } from "../../security/files/plain-file.ts";
import type { Variables } from "../environment-records.ts";
import { configFolder, MAX_STATE_BYTES, stateFile } from "../child-environment.ts";

/** Everything fixed at the start of a spare. Sessions with an equal `key` can claim the spare. */
export interface SpareSpec {
  readonly key: string;
  /** Options of a session in mode `default`, without a folder. */
  readonly options: Options;
  /** Words before its command, see `wrapCommand`. */
  readonly wrapper: readonly string[];
  /** Environment record of the process. */
  readonly record: Variables;
}

/** Properties of a process beside the options of its session. */
interface ProcessTraits extends Pick<SpareSpec, "record" | "wrapper"> {
  readonly principal: Principal;
}

/** Options set by a claim; all other options are fixed at the start of the process. */
export type Claim = Pick<ClaimOptions, OptionsWith<"spare", "claim">>;

/**
 * Splits the options of a session into a spec for the spare and a claim. `undefined` if a spare would not do: checks cannot be
 * switched off in a running process, and output to a session's own file must not come from a process without a session.
 */
export async function splitForSpare(
  { principal, record, wrapper }: ProcessTraits,
  all: Options,
): Promise<{ spec: SpareSpec; claim: Claim } | undefined> {
  const { claimed, fixed, isUnfit } = byTraits(all);
  const { cwd, permissionMode = "default" } = claimed;
  if (cwd === undefined || permissionMode === "bypassPermissions" || isUnfit) return undefined;
  const { sessionId: _, env = {}, ...rest } = fixed;
  const stamp = await configurationStamp(env);
  const key = createHash("sha256")
    .update(JSON.stringify([principal, record, wrapper, rest, env, stamp]))
    .digest("hex");
  const claim = { ...claimed, cwd, permissionMode };
  return { spec: { key, wrapper, record, options: { ...rest, env, permissionMode: "default" } }, claim };
}

/** Splits by `traitsOf`. Everything beside the options of a session (environment, rules ...) is fixed too. */
function byTraits(all: Options): { claimed: Partial<Claim>; fixed: Options; isUnfit: boolean } {
  const claimed: Partial<Claim> = {};
  const fixed: Options = {};
  let isUnfit = all.resume !== undefined;
  for (const [name, value] of Object.entries(all)) {
    const { spare } = traitsOf(name);
    isUnfit ||= spare === "unfit";
    Reflect.set(spare === "claim" ? claimed : fixed, name, value);
  }
  return { claimed, fixed, isUnfit };
}

/** Parts of the user's configuration that Claude Code reads at its start. */
const READ_AT_START = [
  "settings.json",
  ".credentials.json",
  "agents",
  "commands",
  "output-styles",
  "plugins/installed_plugins.json",
  "skills",
];

/** Changes if a process started now would read a different configuration. */
async function configurationStamp(environment: Readonly<Record<string, string | undefined>>): Promise<unknown[]> {
  const folder = configFolder(environment);
  const changed = READ_AT_START.map(async (name) => {
    const found = await stat(join(folder, name)).catch(() => undefined);
    return found && [found.mtimeMs, found.size];
  });
  return Promise.all([...changed, userServers(stateFile(environment))]);
}

/** Reads only `mcpServers`, because Claude Code rewrites its state file all the time. */
async function userServers(file: string): Promise<unknown> {
  try {
    const state: unknown = JSON.parse(await readSmall(file, MAX_STATE_BYTES));
    return typeof state === "object" && state !== null && "mcpServers" in state ? state.mcpServers : undefined;
  } catch {
    return undefined;
  }
}
