import type { CanUseTool, HookCallback, Options, Query, SDKUserMessage } from "@anthropic-ai/claude-agent-sdk";
import type { AgentSignal } from "../../engine/ports.ts";
import type { SpawnedProcess, SpawnOptions } from "@anthropic-ai/claude-agent-sdk";
import type { Folders } from "../risk/places.ts";
import { hooksOf } from "./looking.ts";
import type { Spawned } from "../supervise/spawn.ts";

/** What a process is started with, found out while its creator has already gone on. */
export interface Launch {
  /** Starts Claude Code, or takes one that is up already. */
  readonly open: (bound: Bindings) => Promise<Query>;
  /** In place of it, where nobody wants the process any more: ends what was kept for it. */
  readonly giveUp: () => Promise<void>;
  readonly resumed: boolean;
  /** What a request is judged by. */
  readonly folders: Folders;
  /** Whether its folders are all that it can have, whoever approves another. */
  readonly isFenced: boolean;
  /** The session's own rules that deny, as Claude Code is given them. */
  readonly denying: readonly string[];
  /** Whether these rules let every command run unasked. */
  readonly allowsCommands: boolean;
  /** Prompts of the turn that is to be run again, of which nothing was written down. */
  readonly missing: readonly string[];
  /** Tell the cost between results too: while it runs, or only what it is before the first prompt. */
  readonly watchCost: "always" | "at-start" | "never";
  readonly notices: Extract<AgentSignal, { type: "notice" }>[];
}

/** What ties a process to its session. */
export interface Bindings {
  readonly prompts: AsyncIterable<SDKUserMessage>;
  readonly ask: CanUseTool;
  /** Called before each use of a tool. */
  readonly look: HookCallback;
  /** Told of the process that the session then has; of one that is refused it hears nothing. */
  readonly onSpawned: (spawned: Spawned) => void;
  /** Aborts when nobody wants the process any more. */
  readonly signal: AbortSignal;
}

type StartQuery = (params: { prompt: AsyncIterable<SDKUserMessage>; options: Options }) => Query;

type Spawn = (request: SpawnOptions, onSpawned: (spawned: Spawned) => void) => SpawnedProcess;

/** Starts a process of its own for the session. */
export function openCold(query: StartQuery, options: Options, spawn: Spawn): Launch["open"] {
  return async ({ ask, look, onSpawned, prompts }) => {
    const spawnClaudeCodeProcess: Options["spawnClaudeCodeProcess"] = (request) => spawn(request, onSpawned);
    const bound = { canUseTool: ask, hooks: hooksOf(look, options.hooks), spawnClaudeCodeProcess };
    return Promise.resolve(query({ prompt: prompts, options: { ...options, ...bound } }));
  };
}
