import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { invalidArgument } from "../domain/error.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { AgentProcess, AgentRuntime, AgentSignal, AgentStart } from "../engine/ports.ts";
import { bundledClaude, isExecutableFile, missingClaude, onlyBundledClaude } from "./binary.ts";
import { checkFile, checkFolder, checkInside } from "./check/folders.ts";
import { readImages } from "./check/images.ts";
import { childEnvironment, configFolder } from "./environment.ts";
import { workTreeOf } from "./git.ts";
import { BASH_VARIABLE, checkShell, NO_BASH, windowsShell } from "./check/git-bash.ts";
import { identify } from "./identity.ts";
import { toSdkOptions } from "./options.ts";
import { ClaudeProcess, type Launch } from "./process.ts";
import { endLeftover } from "./supervise/leftover.ts";
import { Spawner } from "./supervise/spawn.ts";
import { findSession, openIn } from "./folder/find.ts";
import { beginningOf } from "./folder/beginning.ts";
import { emptyProject, isTrusted, whatWouldRun } from "./folder/trust.ts";

export interface ClaudeRuntimeOptions {
  /** The environment of the server itself. */
  environment: NodeJS.ProcessEnv;
  /** How deep this server is nested; sessions run one deeper. */
  depth: number;
  /** Whether sessions may start sessions of their own through a server like this one. */
  mayNest: boolean;
  /** How this server was started, to keep it out of its own sessions: [command, ...args], several spellings. */
  ownCommands: readonly (readonly [string, ...string[]])[];
  /** Sessions may use these folders and what is below them only; [] means any. */
  allowDirs: readonly string[];
  /** Folders whose project settings may run, beside those Claude Code trusts. */
  trustDirs: readonly string[];
  claudePath: string | undefined;
  forceReaper: boolean;
  mask: (text: string) => string;
}

/** Runs Claude Code through the Agent SDK, which is loaded with the first session and not before. */
export function claudeRuntime(config: ClaudeRuntimeOptions): AgentRuntime {
  const spawner = new Spawner({ forceReaper: config.forceReaper });
  const running = new Set<ClaudeProcess>();
  return {
    check: async (options) => check(options, config),
    attach: async (sources, { cwd }) =>
      readImages(sources, cwd, async (field, path) => checkInside(field, path, config.allowDirs)),
    find: async (sessionId, options) => findSession(sessionId, configFolder(plainEnvironment(config, options))),
    openIn: async (sessionId, options) => openIn(sessionId, configFolder(plainEnvironment(config, options))),
    workTree: async (options) => workTreeOf(options.cwd, plainEnvironment(config, options)),
    reserve: async () => Promise.resolve(randomUUID()),
    start(request: AgentStart): AgentProcess {
      const launch = prepare(request, config);
      const { mark, onPartial, onSignal, transcriptId } = request;
      const agent = new ClaudeProcess({ launch, mark, transcriptId, spawner, onSignal, onPartial, mask: config.mask });
      running.add(agent);
      void agent.ended.finally(() => running.delete(agent));
      return agent;
    },
    endLeftover,
    identify: async (options) => Promise.resolve(identify(plainEnvironment(config, options))),
    drain: async () => {
      await Promise.all([...running].map(async (agent) => agent.ended));
    },
  };
}

/** What a process with these options would see of the configuration. */
function plainEnvironment({ environment }: ClaudeRuntimeOptions, { env = {} }: Pick<SessionOptions, "env">) {
  return childEnvironment(environment, { depth: 0, mark: "", added: env });
}

async function check(options: SessionOptions, config: ClaudeRuntimeOptions): Promise<void> {
  await checkFolder("cwd", options.cwd, config.allowDirs);
  for (const [index, folder] of (options.additionalDirectories ?? []).entries()) {
    // Claude Code takes a relative one from its own folder.
    const path = resolve(options.cwd, folder);
    await checkFolder(`additionalDirectories[${String(index)}]`, path, config.allowDirs);
  }
  if (options.debugFile !== undefined) {
    await checkFile("debugFile", resolve(options.cwd, options.debugFile), config.allowDirs);
  }
  const own = options.pathToClaudeCodeExecutable;
  if (own !== undefined && !isExecutableFile(own)) {
    throw invalidArgument("pathToClaudeCodeExecutable", `${own} is no executable file.`);
  }
  if (own === undefined && config.claudePath === undefined && bundledClaude() === undefined) {
    throw invalidArgument("pathToClaudeCodeExecutable", missingClaude());
  }
  const environment = childEnvironment(config.environment, { depth: 0, mark: "", added: options.env ?? {} });
  checkShell({ platform: process.platform, environment, exists: existsSync });
}

async function prepare(request: AgentStart, config: ClaudeRuntimeOptions): Promise<Launch> {
  await request.admitted;
  const { mark, options } = request;
  const { depth } = config;
  const added = options.env ?? {};
  const { environment, notices } = withShell(childEnvironment(config.environment, { depth, mark, added }));
  const sources = options.settingSources ?? ["user", "project", "local"];
  const usesProject = sources.includes("project") || sources.includes("local");
  const trusted = !usesProject || (await isTrusted(options.cwd, config.trustDirs, environment));
  const beginning = await beginningOf(request, configFolder(environment));
  const { query } = await import("@anthropic-ai/claude-agent-sdk");
  const executable = options.pathToClaudeCodeExecutable ?? config.claudePath ?? onlyBundledClaude();
  return {
    query,
    resumed: beginning.resumed,
    missing: beginning.missing,
    watchCost: options.maxBudgetUsd === undefined ? (request.origin ? "at-start" : "never") : "always",
    notices: trusted ? notices : [...untrustedNotices(options.cwd), ...notices],
    options: {
      ...toSdkOptions(options),
      ...beginning.options,
      ...(executable !== undefined && { pathToClaudeCodeExecutable: executable }),
      ...(!trusted && { projectConfigRoot: await emptyProject(environment) }),
      ...(!config.mayNest && { settings: { deniedMcpServers: ownServer(config) } }),
      env: { ...environment, ...(beginning.runsAgain && { CLAUDE_CODE_RESUME_INTERRUPTED_TURN: "1" }) },
    },
  };
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
function ownServer({ ownCommands }: ClaudeRuntimeOptions) {
  return [
    { serverName: "claude-code-mcp" },
    ...ownCommands.map(([command, ...args]) => ({ serverCommand: [command, ...args] satisfies [string, ...string[]] })),
  ];
}

function untrustedNotices(cwd: string): Notice[] {
  const files = whatWouldRun(cwd);
  if (files.length === 0) return [];
  const advice = "Trust it by opening it once in Claude Code, or start the server with --trust-dir.";
  const message = `${cwd} is not trusted: its settings, hooks and MCP servers are off; CLAUDE.md is read. ${advice}`;
  return [{ type: "notice", kind: "untrusted_directory", message, details: { files } }];
}
