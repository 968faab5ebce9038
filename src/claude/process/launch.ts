import type {
  CanUseTool,
  Options,
  Query,
  SDKUserMessage,
  SpawnedProcess,
  SpawnOptions,
} from "@anthropic-ai/claude-agent-sdk";
import { once } from "node:events";
import type { Account } from "../../domain/plan.ts";
import type { Identity } from "../../domain/process.ts";
import type { AgentReattach, AgentSignal } from "../../engine/ports.ts";
import { otherwise, stat } from "../../security/files/limited.ts";
import type { Folders } from "../risk/named-paths.ts";
import { StartError } from "../start-error.ts";
import { hooksByEvent, hooksOf, type HookBindings } from "./hooks.ts";
import type { ReattachedProcess } from "../shim/shimmed-handle.ts";
import type { ProcessHandle } from "../supervise/process-handle.ts";

/** Plan of a process start, resolved after `ClaudeProcess` was created. */
export interface LaunchPlan {
  /** Starts Claude Code, claims a spare or continues a running process. */
  readonly start: (bound: SessionBindings) => Promise<Query>;
  /** Called instead of `start` if the session was given up: ends the reserved spare. */
  readonly giveUp: () => Promise<void>;
  readonly resumed: boolean;
  /** Folders for judging requests. */
  readonly folders: Folders;
  /** True with `--sandbox required`: no approval adds a folder. */
  readonly isSandboxed: boolean;
  /** Deny rules of the session, in Claude Code's syntax. */
  readonly denying: readonly string[];
  /** True if the session's rules let every command run without approval. */
  readonly allowsCommands: boolean;
  /** Claude Code's configuration folder. */
  readonly configFolder: string;
  /** Account that pays for the process. */
  readonly account: Account;
  readonly identity: Identity;
  /** True if every answer of Claude must have structured output. */
  readonly expectsStructured: boolean;
  /** Ids of prompts of the turn to run again that the transcript lacks. */
  readonly missing: readonly string[];
  /** Reporting of the cost between results: `always` while running, or `at-start` only before the first prompt. */
  readonly watchCost: "always" | "at-start" | "never";
  readonly notices: Extract<AgentSignal, { type: "notice" }>[];
  /**
   * For a process started by another server: number of `lost` lines, id of its environment record, reports of the former owner.
   */
  readonly attached?:
    | (Pick<AgentReattach["reattach"], "open" | "spoken"> & { readonly lost: number; readonly environmentId: string })
    | undefined;
}

/** Session of a process, with the receivers of signals. */
export interface ProcessContext {
  launch: Promise<LaunchPlan>;
  /** True if another server started the process, which then runs before this server can talk to Claude Code. */
  isAttached: boolean;
  /** Id of the session in Claude Code. */
  transcriptId: string;
  /** Epoch of the session's lease. */
  epoch: number;
  onSignal: (signal: AgentSignal, line?: number) => void;
  onPartial: (text: string) => void;
  /** Removes secrets from a text. */
  mask: (text: string) => string;
  /** Removes secrets from a text still being written. */
  maskUnfinished: (text: string) => string;
}

/** Connects a process with its session. */
export interface SessionBindings extends HookBindings {
  readonly prompts: AsyncIterable<SDKUserMessage>;
  readonly ask: CanUseTool;
  /** Called with the process of the session; never with a refused spare. */
  readonly onSpawned: (spawned: ProcessHandle) => void;
  /** Aborts once the session gives the process up. */
  readonly signal: AbortSignal;
  /** Epoch of the session's lease. */
  readonly epoch: number;
}

type StartQuery = (params: { prompt: AsyncIterable<SDKUserMessage>; options: Options }) => Query;

type Spawn = (request: SpawnOptions, onSpawned: (spawned: ProcessHandle) => void) => SpawnedProcess;

/** Starts a new process instead of claiming a spare. */
export function startFresh(query: StartQuery, options: Options, spawn: Spawn): LaunchPlan["start"] {
  return async ({ ask, onSpawned, prompts, signal, ...called }) => {
    await checkResponsive([options.cwd, options.pathToClaudeCodeExecutable]);
    if (signal.aborted) throw new Error("The process was stopped before it started.");
    const spawnClaudeCodeProcess: Options["spawnClaudeCodeProcess"] = (request) => spawn(request, onSpawned);
    const bound = { canUseTool: ask, hooks: hooksOf(called, options.hooks), spawnClaudeCodeProcess };
    return Promise.resolve(query({ prompt: prompts, options: { ...options, ...bound } }));
  };
}

/**
 * Throws `NoAnswerError` for a folder or program on an unresponsive file system, because `spawn` would block this whole
 * process.
 */
async function checkResponsive(paths: readonly (string | undefined)[]): Promise<void> {
  for (const path of paths) if (path !== undefined) await stat(path).catch(otherwise(undefined));
}

/** Continues a process started by another server, under the rules of this server. All other options were fixed at the start. */
export function continueAttached(
  query: StartQuery,
  options: Options,
  { process, spawned }: ReattachedProcess,
): LaunchPlan["start"] {
  return async ({ ask, onSpawned, prompts, ...called }) => {
    onSpawned(spawned);
    const bound = {
      canUseTool: ask,
      hooks: hooksByEvent(called, options.hooks),
      spawnClaudeCodeProcess: () => process,
    };
    return Promise.resolve(query({ prompt: prompts, options: { ...options, ...bound } }));
  };
}

/** Holds prompts until Claude Code has listed `agent`, because Claude Code silently runs without an unknown agent. */
export function requireAgent(agent: string | undefined, start: LaunchPlan["start"]): LaunchPlan["start"] {
  if (agent === undefined) return start;
  return async (bound) => {
    let release: () => void = () => undefined;
    const isKnown = new Promise<void>((resolve) => (release = resolve));
    const query = await start({ ...bound, prompts: delayUntil(isKnown, bound.prompts) });
    const known = await Promise.race([askAgents(query), once(bound.signal, "abort").then(() => undefined)]);
    if (known && !known.includes(agent)) {
      query.close();
      throw new StartError(
        "unknown_agent",
        `advanced.agent: there is no agent ${agent}; available: ${known.join(", ")}.`,
      );
    }
    release();
    return query;
  };
}

/** Yields the items of `source` once `ready` has resolved. */
export async function* delayUntil<T>(ready: Promise<unknown>, source: AsyncIterable<T>): AsyncGenerator<T, void> {
  await ready;
  yield* source;
}

/** `undefined` if the process ended before its answer; the stream reports the end. */
async function askAgents(query: Query): Promise<string[] | undefined> {
  const initialized = await query.initializationResult().catch(() => undefined);
  return initialized?.agents.map(({ name }) => name);
}

/** Facts that the first signal of a process reports. */
export type LaunchFacts = Pick<LaunchPlan, "attached" | "identity" | "missing" | "resumed">;
