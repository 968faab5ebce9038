import type { ClaimOptions, Options } from "@anthropic-ai/claude-agent-sdk";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { stat } from "../../security/files/limited.ts";
import { type OptionsWith, traitsOf } from "../../domain/options/traits.ts";
import type { Principal } from "../../domain/principal.ts";
import { readSmall } from "../../security/files/plain-file.ts";
import type { Variables } from "../environments.ts";
import { configFolder, MAX_STATE_BYTES, stateFile } from "../environment.ts";

/** All that is fixed when a spare is started. Sessions with the same key can take the same spare. */
export interface SpareSpec {
  readonly key: string;
  /** As of a session that asks everything, in no folder yet. */
  readonly options: Options;
  /** Put before its command. */
  readonly wrapper: readonly string[];
  /** The environment record that it starts with. */
  readonly record: Variables;
}

/** What a process has besides the options of its session. */
interface Besides extends Pick<SpareSpec, "record" | "wrapper"> {
  readonly principal: Principal;
}

/** What a claim sets; the rest of the options is fixed at the start of the process. */
export type Claim = Pick<ClaimOptions, OptionsWith<"spare", "claim">>;

/**
 * Splits the options of a session into what a spare is started with and what is set when it is claimed. Undefined where a
 * spare would not do: checks cannot be switched off in a process that was started with them, and what is written to a
 * file of the session's own must not come from a process without a session.
 */
export async function spareSpecOf(
  { principal, record, wrapper }: Besides,
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

/** What Claude Code has besides the options of a session (its environment, its rules ...) is fixed as well. */
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

/** Of the user's configuration, what Claude Code reads while it starts. */
const READ_AT_START = [
  "settings.json",
  ".credentials.json",
  "agents",
  "commands",
  "output-styles",
  "plugins/installed_plugins.json",
  "skills",
];

/** Changes when a process that starts now would read something else than one that has started before. */
async function configurationStamp(environment: Readonly<Record<string, string | undefined>>): Promise<unknown[]> {
  const folder = configFolder(environment);
  const changed = READ_AT_START.map(async (name) => {
    const found = await stat(join(folder, name)).catch(() => undefined);
    return found && [found.mtimeMs, found.size];
  });
  return Promise.all([...changed, userServers(stateFile(environment))]);
}

/** Claude Code writes to its state file all the time: of what stands in it, only the user's own MCP servers matter. */
async function userServers(file: string): Promise<unknown> {
  try {
    const state: unknown = JSON.parse(await readSmall(file, MAX_STATE_BYTES));
    return typeof state === "object" && state !== null && "mcpServers" in state ? state.mcpServers : undefined;
  } catch {
    return undefined;
  }
}
