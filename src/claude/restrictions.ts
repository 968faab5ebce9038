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

/** What no session may do, as its Claude Code is told: in the last place of all, where no option of the session undoes it. */

interface Restricted {
  readonly options: Pick<SessionOptions, "agents" | "cwd" | "disallowedTools">;
  readonly policy: SessionPolicy;
  readonly environment: Record<string, string>;
  readonly sandboxed: SandboxTerms | undefined;
  /** Rules of the project that the operator's word makes count; the one thing here that allows. */
  readonly allow?: readonly string[];
  /** Set if hooks of this Claude Code can hold messages of other sessions, and commands of skills. */
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
  // In the settings they would close the files to the sandbox as well: a shell could not start node any more.
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
 * Rules that deny, so that each reaches Claude Code: those that its command line would divide travel in the settings, and
 * behind a malformed one, which a stored session can still have, stands no other.
 */
function forCommandLine(rules: readonly string[]): { readonly deny: string[]; readonly divided: string[] } {
  const whole = rules.filter((rule) => malformedRule(rule, "deny") === undefined);
  const malformed = rules.filter((rule) => !whole.includes(rule));
  return {
    deny: [...whole.filter((rule) => !isDivided(rule)), ...malformed],
    divided: whole.filter(isDivided),
  };
}

/** The session's own rules that deny. One of a subagent counts for all of them; a tool it lacks by name it cannot ask for. */
export function denyingOf({ agents = {}, disallowedTools = [] }: Restricted["options"]): string[] {
  const ofAgents = Object.values(agents).flatMap((agent) => agent.disallowedTools ?? []);
  return [...disallowedTools, ...ofAgents.filter((rule) => rule.includes("("))];
}

/** How deep a session is does not travel over HTTP: by these addresses sessions would start sessions without end. */
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

/** What a session with this environment may not reach. */
export async function closedTo(
  { cwd }: Pick<SessionOptions, "cwd">,
  env: Record<string, string>,
  { protection }: Pick<ClaudeSettings, "protection">,
): Promise<ProtectedPath[]> {
  return protectedFor(await protection.closed(), { cwd, configFolder: configFolder(env), stateFile: stateFile(env) });
}
