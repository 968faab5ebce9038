import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { resolve } from "node:path";
import type { SessionPolicy } from "../domain/approvals/session-policy.ts";
import { isSplitByClaude, malformedRule } from "../domain/approvals/malformed-rule.ts";
import { PLUGIN_SERVER, PRODUCT } from "../domain/names.ts";
import type { SessionOptions } from "../domain/options.ts";
import { denyRulesOf } from "../security/deny-rules.ts";
import { protectedFor, type ProtectedPath } from "../security/protected-paths.ts";
import { configFolder, stateFile } from "./child-environment.ts";
import type { SandboxPlan } from "./sandbox/sandbox.ts";
import { declareHooks } from "./process/hooks.ts";
import { toClaudeRules, anchorRules, parseRules } from "./rules.ts";
import type { ClaudeDependencies } from "./dependencies.ts";

/**
 * Restricts every session through the options of its Claude Code, applied last so that no session option undoes a restriction.
 */

interface Restricted {
  readonly options: Pick<SessionOptions, "agents" | "cwd" | "disallowedTools">;
  readonly policy: SessionPolicy;
  readonly environment: Record<string, string>;
  readonly sandboxed: SandboxPlan | undefined;
  /** Allow rules of the project, in force by the operator's decision. Everything else here only restricts. */
  readonly allow?: readonly string[];
  /** True if this Claude Code has hooks that can hold messages between sessions and commands of skills. */
  readonly canHold: boolean;
}

export async function buildRestrictions(
  { allow = [], canHold, environment, sandboxed, options, policy }: Restricted,
  config: ClaudeDependencies,
): Promise<Partial<Options>> {
  const { cwd, disallowedTools = [] } = options;
  const folder = resolve(cwd);
  const rules = parseRules(policy);
  const ask = [...toClaudeRules(rules.ask, folder), ...(sandboxed?.ask ?? [])];
  const own = denyRulesOf(await findClosedPaths(options, environment, config));
  // Not in `settings`, because there the rules would close files to the sandbox too: a shell could no longer start node.
  const sandboxDeny = sandboxed ? [...own, ...sandboxed.deny] : [];
  const { deny, divided } = splitDenyRules([...disallowedTools, ...toClaudeRules(rules.deny, folder), ...sandboxDeny]);
  const { hooks, settings: guarded } = declareHooks({ rules, disallowedTools: sessionDenyRules(options) }, canHold);
  const denied = await deniedServers(policy, config);
  const settings = {
    ...guarded,
    ...(denied.length > 0 && { deniedMcpServers: denied }),
    permissions: {
      ...(allow.length > 0 && { allow: anchorRules(folder, allow) }),
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

function withDeny(permissions: SandboxPlan["permissions"], rules: readonly string[]): SandboxPlan["permissions"] {
  return rules.length === 0 ? permissions : { ...permissions, deny: [...(permissions.deny ?? []), ...rules] };
}

/**
 * Splits deny rules so that each reaches Claude Code: rules that the command line would divide go into the settings, and
 * malformed rules, possible in a stored session, come last so that no rule stands behind them.
 */
function splitDenyRules(rules: readonly string[]): { readonly deny: string[]; readonly divided: string[] } {
  const whole = rules.filter((rule) => malformedRule(rule, "deny") === undefined);
  const malformed = rules.filter((rule) => !whole.includes(rule));
  return {
    deny: [...whole.filter((rule) => !isSplitByClaude(rule)), ...malformed],
    divided: whole.filter(isSplitByClaude),
  };
}

/**
 * Returns the session's own deny rules. A rule of a subagent counts for all; a bare tool name does not, because the subagent
 * lacks the tool.
 */
export function sessionDenyRules({ agents = {}, disallowedTools = [] }: Restricted["options"]): string[] {
  const ofAgents = Object.values(agents).flatMap((agent) => agent.disallowedTools ?? []);
  return [...disallowedTools, ...ofAgents.filter((rule) => rule.includes("("))];
}

/**
 * Always denies the servers' own addresses: HTTP does not carry the nesting depth, so sessions could start sessions without
 * end.
 */
async function deniedServers({ mayNest }: SessionPolicy, config: ClaudeDependencies) {
  const urls = await config.ownUrls();
  return [...(mayNest ? [] : ownServer(config)), ...urls.map((serverUrl) => ({ serverUrl }))];
}

function ownServer({ ownCommands }: ClaudeDependencies) {
  return [
    ...[PRODUCT, PLUGIN_SERVER].map((serverName) => ({ serverName })),
    ...ownCommands().map(([command, ...args]) => ({
      serverCommand: [command, ...args] satisfies [string, ...string[]],
    })),
  ];
}

/** Returns the paths closed to a session with this environment. */
export async function findClosedPaths(
  { cwd }: Pick<SessionOptions, "cwd">,
  env: Record<string, string>,
  { protection }: Pick<ClaudeDependencies, "protection">,
): Promise<ProtectedPath[]> {
  return protectedFor(await protection.closed(), { cwd, configFolder: configFolder(env), stateFile: stateFile(env) });
}
