import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { randomUUID } from "node:crypto";
import { lstat, realpath, stat } from "node:fs/promises";
import { dirname, relative, resolve, sep } from "node:path";
import { invalidArgument } from "../domain/error.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { AgentProcess, AgentRuntime, AgentSignal, AgentStart } from "../engine/ports.ts";
import { bundledClaude, isExecutableFile, missingClaude } from "./binary.ts";
import { childEnvironment, configFolder } from "./environment.ts";
import { workTreeOf } from "./git.ts";
import { identify } from "./identity.ts";
import { readImages } from "./images.ts";
import { toSdkOptions } from "./options.ts";
import { ClaudeProcess, type Launch } from "./process.ts";
import { endLeftover } from "./supervise/leftover.ts";
import { Spawner } from "./supervise/spawn.ts";
import { findSession } from "./folder/find.ts";
import { hasTranscript } from "./folder/transcript.ts";
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
      readImages(sources, cwd, async (field, path) => checkInside(field, path, config)),
    find: async (sessionId, options) => findSession(sessionId, configFolder(plainEnvironment(config, options))),
    workTree: workTreeOf,
    reserve: async () => Promise.resolve(randomUUID()),
    start(request: AgentStart): AgentProcess {
      const launch = prepare(request, config);
      const { mark, onSignal, transcriptId } = request;
      const agent = new ClaudeProcess({ launch, mark, transcriptId, spawner, onSignal, mask: config.mask });
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
  await checkFolder("cwd", options.cwd, config);
  for (const [index, folder] of (options.additionalDirectories ?? []).entries()) {
    await checkFolder(`additionalDirectories[${String(index)}]`, folder, config);
  }
  if (options.debugFile !== undefined) await checkFile("debugFile", resolve(options.cwd, options.debugFile), config);
  const own = options.pathToClaudeCodeExecutable;
  if (own !== undefined && !isExecutableFile(own)) {
    throw invalidArgument("pathToClaudeCodeExecutable", `${own} is no executable file.`);
  }
  if (own === undefined && config.claudePath === undefined && bundledClaude() === undefined) {
    throw invalidArgument("pathToClaudeCodeExecutable", missingClaude());
  }
}

async function checkFolder(field: string, folder: string, config: ClaudeRuntimeOptions): Promise<void> {
  const found = await stat(folder).catch(() => undefined);
  if (!found)
    throw invalidArgument(field, `${folder} does not exist on the server's machine. Name an existing folder.`);
  if (!found.isDirectory()) throw invalidArgument(field, `${folder} is a file. Name the folder it lies in.`);
  await checkInside(field, folder, config);
}

/** A file that Claude Code is to write: it need not be there, its folder must. */
async function checkFile(field: string, file: string, config: ClaudeRuntimeOptions): Promise<void> {
  await checkFolder(field, dirname(file), config);
  const found = await stat(file).catch(() => undefined);
  if (found?.isDirectory()) throw invalidArgument(field, `${file} is a folder. Name a file in it.`);
  // A link is followed to what would be written; one that leads nowhere would be written through unchecked.
  if (found) return checkInside(field, file, config);
  const isLink = await lstat(file).then(
    () => true,
    () => false,
  );
  if (isLink) throw invalidArgument(field, `${file} is a link that leads nowhere. Name a file.`);
}

async function checkInside(field: string, path: string, { allowDirs }: ClaudeRuntimeOptions): Promise<void> {
  if (allowDirs.length === 0) return;
  const real = await realpath(path);
  const roots = await Promise.all(allowDirs.map(async (root) => realpath(root).catch(() => root)));
  if (!roots.some((root) => isInside(real, root))) {
    throw invalidArgument(
      field,
      `${path} is outside the folders this server allows (--allow-dir): ${allowDirs.join(", ")}.`,
    );
  }
}

function isInside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !way.startsWith(sep) && !/^[A-Za-z]:/.test(way));
}

async function prepare(request: AgentStart, config: ClaudeRuntimeOptions): Promise<Launch> {
  const { mark, options } = request;
  const { depth } = config;
  const added = options.env ?? {};
  const environment = childEnvironment(config.environment, { depth, mark, added });
  const sources = options.settingSources ?? ["user", "project", "local"];
  const usesProject = sources.includes("project") || sources.includes("local");
  const trusted = !usesProject || (await isTrusted(options.cwd, config.trustDirs, environment));
  const beginning = await beginningOf(request, configFolder(environment));
  const { query } = await import("@anthropic-ai/claude-agent-sdk");
  const executable = options.pathToClaudeCodeExecutable ?? config.claudePath;
  return {
    query,
    resumed: beginning.resumed,
    watchCost: options.maxBudgetUsd === undefined ? (request.origin ? "at-start" : "never") : "always",
    notices: trusted ? [] : untrustedNotices(options.cwd),
    options: {
      ...toSdkOptions(options),
      ...beginning.options,
      ...(executable !== undefined && { pathToClaudeCodeExecutable: executable }),
      ...(!trusted && { projectConfigRoot: await emptyProject(environment) }),
      ...(!config.mayNest && { settings: { deniedMcpServers: ownServer(config) } }),
      env: { ...environment, ...(request.rerun && beginning.resumed && { CLAUDE_CODE_RESUME_INTERRUPTED_TURN: "1" }) },
    },
  };
}

/** With its own transcript, with a copy of another's, or afresh where there is nothing to go on with. */
async function beginningOf(
  { first, origin, resumeAt, sessionId, transcriptId }: AgentStart,
  folder: string,
): Promise<{ resumed: boolean; options: Partial<Options> }> {
  const at = resumeAt ?? (first ? origin?.at : undefined);
  const cut = at === undefined ? {} : { resumeSessionAt: at };
  const isOwn = (!first || origin?.transcriptId === transcriptId) && (await hasTranscript(transcriptId, folder));
  if (isOwn) return { resumed: true, options: { resume: transcriptId, ...cut } };
  if (origin && (await hasTranscript(origin.transcriptId, folder))) {
    return { resumed: true, options: { resume: origin.transcriptId, forkSession: true, sessionId, ...cut } };
  }
  return { resumed: false, options: { sessionId } };
}

/** Once installed for the user we are one of the MCP servers that every session starts: a session must not start us. */
function ownServer({ ownCommands }: ClaudeRuntimeOptions) {
  return [
    { serverName: "claude-code-mcp" },
    ...ownCommands.map(([command, ...args]) => ({ serverCommand: [command, ...args] satisfies [string, ...string[]] })),
  ];
}

function untrustedNotices(cwd: string): Extract<AgentSignal, { type: "notice" }>[] {
  const files = whatWouldRun(cwd);
  if (files.length === 0) return [];
  const advice = "Trust it by opening it once in Claude Code, or start the server with --trust-dir.";
  const message = `${cwd} is not trusted: its settings, hooks and MCP servers are off; CLAUDE.md is read. ${advice}`;
  return [{ type: "notice", kind: "untrusted_directory", message, details: { files } }];
}
