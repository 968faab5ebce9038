import type { Confinement } from "../domain/principal.ts";
import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import type { SessionOptions } from "../domain/options.ts";
import type { AgentSignal, AgentStart } from "../engine/ports.ts";
import { onlyBundledClaude } from "./binary.ts";
import { checkPlaces } from "./check/folders.ts";
import { BASH_VARIABLE, NO_BASH, windowsShell } from "./check/git-bash.ts";
import { childEnvironment, configFolder } from "./environment.ts";
import { beginningOf } from "./folder/beginning.ts";
import { emptyProject, isTrusted, whatWouldRun } from "./folder/trust.ts";
import { toSdkOptions } from "./options.ts";
import { openCold, type Launch } from "./process/launch.ts";
import type { Folders } from "./risk/places.ts";
import { handedOver } from "./rules.ts";
import { confinementOf, type ClaudeSettings } from "./settings.ts";
import { recipeOf, type Recipe } from "./spares/recipe.ts";
import type { Spares } from "./spares/spares.ts";
import type { Spawner } from "./supervise/spawn.ts";

/** From the options of a session to a process: whose settings it reads, in which environment, from which beginning. */

interface Base {
  /** All but where in the conversation it begins, and what ties it to us. */
  readonly options: Options & { env: Record<string, string> };
  readonly notices: Notice[];
}

async function baseOf(
  options: SessionOptions,
  mark: string,
  config: ClaudeSettings,
  confinement: Confinement,
): Promise<Base> {
  const { depth } = config;
  const child = { depth, mark, configDir: confinement.configDir, added: options.env ?? {} };
  const { environment, notices } = withShell(childEnvironment(config.environment, child));
  const sources = options.settingSources ?? ["user", "project", "local"];
  const usesProject = sources.includes("project") || sources.includes("local");
  const trusted = !usesProject || (await isTrusted(options.cwd, confinement, environment));
  const executable = options.pathToClaudeCodeExecutable ?? config.claudePath ?? onlyBundledClaude();
  return {
    notices: trusted ? notices : [...untrustedNotices(options.cwd, confinement), ...notices],
    options: {
      ...toSdkOptions(options),
      ...(executable !== undefined && { pathToClaudeCodeExecutable: executable }),
      ...(!trusted && { projectConfigRoot: await emptyProject(environment) }),
      ...withRules(options, config),
      env: environment,
    },
  };
}

/** Given in the last place of all, where no option of the session undoes it. */
function withRules({ cwd, disallowedTools = [] }: SessionOptions, config: ClaudeSettings): Partial<Options> {
  const folder = resolve(cwd);
  const ask = handedOver(config.rules.ask, folder);
  const deny = [...disallowedTools, ...handedOver(config.rules.deny, folder)];
  const settings = {
    ...(!config.mayNest && { deniedMcpServers: ownServer(config) }),
    ...(ask.length > 0 && { permissions: { ask } }),
  };
  return {
    ...(deny.length > 0 && { disallowedTools: deny }),
    ...(Object.keys(settings).length > 0 && { settings }),
  };
}

/** What a spare for sessions like this one is started with. */
export async function recipeFor(
  { options, principal }: Pick<AgentStart, "options" | "principal">,
  config: ClaudeSettings,
): Promise<Recipe | undefined> {
  const confinement = confinementOf(config, principal);
  const base = await baseOf(options, "", config, confinement);
  return (await recipeOf({ principal, wrapper: confinement.spawnWrapper }, base.options))?.recipe;
}

export async function prepare(
  request: AgentStart,
  config: ClaudeSettings,
  { spares, spawner }: { spares: Spares; spawner: Spawner },
): Promise<Launch> {
  await request.admitted;
  const { mark, origin, principal } = request;
  const confinement = confinementOf(config, principal);
  // Once more, and as late as can be: a link may lead elsewhere by now.
  const options = await checkPlaces(request.options, confinement.allowDirs);
  const base = await baseOf(options, mark, config, confinement);
  const { env } = base.options;
  const beginning = await beginningOf(request, configFolder(env));
  const { query } = await import("@anthropic-ai/claude-agent-sdk");
  const again = beginning.runsAgain && { CLAUDE_CODE_RESUME_INTERRUPTED_TURN: "1" };
  const { spawnWrapper: wrapper } = confinement;
  const cold = openCold(
    query,
    { ...base.options, ...beginning.options, env: { ...env, ...again } },
    (process, onSpawned) => spawner.spawn(process, onSpawned, wrapper),
  );
  const split = spares.has(mark) ? await recipeOf({ principal, wrapper }, base.options) : undefined;
  return {
    // Taken no sooner than it is used: until then the session can be given up.
    open: async (bound) => {
      const spare = await spares.take(mark, split?.recipe.key);
      return spare && split ? spare.openOr(cold, split.claim, bound) : cold(bound);
    },
    resumed: beginning.resumed,
    folders: foldersOf(options, env),
    missing: beginning.missing,
    watchCost: options.maxBudgetUsd === undefined ? (origin ? "at-start" : "never") : "always",
    notices: base.notices,
  };
}

export function foldersOf({ additionalDirectories = [], cwd }: SessionOptions, env: Record<string, string>): Folders {
  return { cwd, additionalDirectories, home: env["HOME"] ?? env["USERPROFILE"] ?? homedir() };
}

type Notice = Extract<AgentSignal, { type: "notice" }>;

/** The environment with the Git Bash that was found, and what to say where there is none. */
function withShell(environment: Record<string, string>): { environment: Record<string, string>; notices: Notice[] } {
  const shell = windowsShell({ platform: process.platform, environment, exists: existsSync });
  if (shell.kind === "bash") return { environment: { ...environment, [BASH_VARIABLE]: shell.path }, notices: [] };
  const isMissing = shell.kind === "powershell only";
  return { environment, notices: isMissing ? [{ type: "notice", kind: "warning", message: NO_BASH }] : [] };
}

/** Once installed for the user we are one of the MCP servers that every session starts: a session must not start us. */
function ownServer({ ownCommands, ownUrls }: ClaudeSettings) {
  return [
    { serverName: "claude-code-mcp" },
    ...ownCommands.map(([command, ...args]) => ({ serverCommand: [command, ...args] satisfies [string, ...string[]] })),
    ...ownUrls.map((serverUrl) => ({ serverUrl })),
  ];
}

function untrustedNotices(cwd: string, { trustsRecord }: Confinement): Notice[] {
  const files = whatWouldRun(cwd);
  if (files.length === 0) return [];
  const advice = trustsRecord
    ? "Trust it by opening it once in Claude Code, or start the server with --trust-dir."
    : "The operator of the server can trust it, with --trust-dir or trustDirs of the user.";
  const message = `${cwd} is not trusted: its settings, hooks and MCP servers are off; CLAUDE.md is read. ${advice}`;
  return [{ type: "notice", kind: "untrusted_directory", message, details: { files } }];
}
