import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { resolve } from "node:path";
import type { SessionPolicy } from "../domain/approvals/session-policy.ts";
import { isDivided, malformedRule } from "../domain/approvals/malformed-rule.ts";
import { PLUGIN_SERVER, PRODUCT } from "../domain/names.ts";
import type { SessionOptions } from "../domain/options.ts";
import { denyRulesOf } from "../security/deny-rules.ts";
import { protectedFor, type ProtectedPath } from "../security/protected-paths.ts";
import { configFolder, stateFile } from "./environment.ts";
import type { SandboxTerms } from "./sandbox/sandbox.ts";
import { declaredGuards } from "./process/hooks.ts";
import { handedOver, rootedIn, rulesOf } from "./rules.ts";
import type { ClaudeSettings } from "./settings.ts";

/**
 * Restricts every session through the options of its Claude Code, applied last so that no session option undoes a restriction.
 */

interface Restricted {
  readonly options: Pick<SessionOptions, "agents" | "cwd" | "disallowedTools">;
  readonly policy: SessionPolicy;
  readonly environment: Record<string, string>;
  readonly sandboxed: SandboxTerms | undefined;
  /** Allow rules of the project, in force by the operator's decision. Everything else here only restricts. */
  readonly allow?: readonly string[];
  /** True if this Claude Code has hooks that can hold messages between sessions and commands of skills. */
  readonly canHold: boolean;
}

export async function restrictions(
  { allow = [], canHold, environment, sandboxed, options, policy }: Restricted,
  config: ClaudeSettings,
): Promise<Partial<Options>> {
  const { cwd, disallowedTools = [] } = options;
  const folder = resolve(cwd);
  const rules = rulesOf(policy);
  const ask = [...handedOver(rules.ask, folder), ...(sandboxed?.ask ?? [])];
  const own = denyRulesOf(await closedTo(options, environment, config));
  // Not in `settings`, because there the rules would close files to the sandbox too: a shell could no longer start node.
  const sandboxDeny = sandboxed ? [...own, ...sandboxed.deny] : [];
  const { deny, divided } = forCommandLine([...disallowedTools, ...handedOver(rules.deny, folder), ...sandboxDeny]);
  const { hooks, settings: guarded } = declaredGuards({ rules, disallowedTools: denyingOf(options) }, canHold);
  const denied = await deniedServers(policy, config);
  const settings = {
    ...guarded,
    ...(denied.length > 0 && { deniedMcpServers: denied }),
    permissions: {
      ...(allow.length > 0 && { allow: rootedIn(folder, allow) }),
      ...(ask.length > 0 && { ask }),
      ...(sandboxed ? withDeny(sandboxed.permissions, divided) : { deny: [...own, ...divided] }),
    },
  };
  return {
    ...(deny.length > 0 && { disallowedTools: deny }),
    hooks,
    settings,
  };
}

function withDeny(permissions: SandboxTerms["permissions"], rules: readonly string[]): SandboxTerms["permissions"] {
  return rules.length === 0 ? permissions : { ...permissions, deny: [...(permissions.deny ?? []), ...rules] };
}

/**
 * Splits deny rules so that each reaches Claude Code: rules that the command line would divide go into the settings, and
 * malformed rules, possible in a stored session, come last so that no rule stands behind them.
 */
function forCommandLine(rules: readonly string[]): { readonly deny: string[]; readonly divided: string[] } {
  const whole = rules.filter((rule) => malformedRule(rule, "deny") === undefined);
  const malformed = rules.filter((rule) => !whole.includes(rule));
  return {
    deny: [...whole.filter((rule) => !isDivided(rule)), ...malformed],
    divided: whole.filter(isDivided),
  };
}

/**
 * Returns the session's own deny rules. A rule of a subagent counts for all; a bare tool name does not, because the subagent
 * lacks the tool.
 */
export function denyingOf({ agents = {}, disallowedTools = [] }: Restricted["options"]): string[] {
  const ofAgents = Object.values(agents).flatMap((agent) => agent.disallowedTools ?? []);
  return [...disallowedTools, ...ofAgents.filter((rule) => rule.includes("("))];
}

/**
 * Always denies the servers' own addresses: HTTP does not carry the nesting depth, so sessions could start sessions without
 * end.
 */
async function deniedServers({ mayNest }: SessionPolicy, config: ClaudeSettings) {
  const urls = await config.ownUrls();
  return [...(mayNest ? [] : ownServer(config)), ...urls.map((serverUrl) => ({ serverUrl }))];
}

function ownServer({ ownCommands }: ClaudeSettings) {
  return [
    ...[PRODUCT, PLUGIN_SERVER].map((serverName) => ({ serverName })),
    ...ownCommands().map(([command, ...args]) => ({
      serverCommand: [command, ...args] satisfies [string, ...string[]],
    })),
  ];
}

/** Returns the paths closed to a session with this environment. */
export async function closedTo(
  { cwd }: Pick<SessionOptions, "cwd">,
  env: Record<string, string>,
  { protection }: Pick<ClaudeSettings, "protection">,
): Promise<ProtectedPath[]> {
  return protectedFor(await protection.closed(), { cwd, configFolder: configFolder(env), stateFile: stateFile(env) });
}
