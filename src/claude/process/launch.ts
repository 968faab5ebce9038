import type {
  CanUseTool,
  Options,
  Query,
  SDKUserMessage,
  SpawnedProcess,
  SpawnOptions,
} from "@anthropic-ai/claude-agent-sdk";
import { once } from "node:events";
import type { AgentReattach, AgentSignal } from "../../engine/ports.ts";
import { otherwise, stat } from "../../security/files/limited.ts";
import type { Folders } from "../risk/places.ts";
import { StartError } from "../start-error.ts";
import { hooksByEvent, hooksOf, type HookBindings } from "./hooks.ts";
import type { Attachment } from "../shim/held-process.ts";
import type { Spawned } from "../supervise/spawned.ts";

/** The plan of a process start. Resolved after `ClaudeProcess` was created. */
export interface LaunchPlan {
  /** Starts Claude Code, or takes one that is up already. */
  readonly start: (bound: SessionBindings) => Promise<Query>;
  /** Called in place of `start` when the session was given up: ends the spare that was kept for it. */
  readonly giveUp: () => Promise<void>;
  readonly resumed: boolean;
  /** What a request is judged by. */
  readonly folders: Folders;
  /** With --sandbox required, no approval adds a folder. */
  readonly isSandboxed: boolean;
  /** The session's own rules that deny, as Claude Code is given them. */
  readonly denying: readonly string[];
  /** Whether these rules let every command run unasked. */
  readonly allowsCommands: boolean;
  /** Claude Code's configuration folder. */
  readonly configFolder: string;
  /** Every answer of Claude is to have structured output. */
  readonly expectsStructured: boolean;
  /** Prompts of the turn that is to be run again, of which nothing was written down. */
  readonly missing: readonly string[];
  /** Tell the cost between results too: while it runs, or only what it is before the first prompt. */
  readonly watchCost: "always" | "at-start" | "never";
  readonly notices: Extract<AgentSignal, { type: "notice" }>[];
  /** Of a process that another server has started: what of its lines is lost, the record of its environment, and what that server has told of it. */
  readonly attached?:
    | (Pick<AgentReattach["reattach"], "open" | "spoken"> & { readonly lost: number; readonly environmentId: string })
    | undefined;
}

/** The session of a process, and who hears it. */
export interface ProcessContext {
  launch: Promise<LaunchPlan>;
  /** Another server has started it: it runs already, before this one can talk to it. */
  isAttached: boolean;
  /** The id under which Claude Code keeps the session. */
  transcriptId: string;
  /** Epoch of the session's lease. */
  epoch: number;
  onSignal: (signal: AgentSignal, line?: number) => void;
  onPartial: (text: string) => void;
  /** Takes secrets out of a text. */
  mask: (text: string) => string;
  /** Takes secrets out of a text that is still being written. */
  maskUnfinished: (text: string) => string;
}

/** Ties a process to its session. */
export interface SessionBindings extends HookBindings {
  readonly prompts: AsyncIterable<SDKUserMessage>;
  readonly ask: CanUseTool;
  /** Called with the process of the session; never with one that was refused. */
  readonly onSpawned: (spawned: Spawned) => void;
  /** Aborts when the session gives the process up. */
  readonly signal: AbortSignal;
  /** Epoch of the session's lease. */
  readonly epoch: number;
}

type StartQuery = (params: { prompt: AsyncIterable<SDKUserMessage>; options: Options }) => Query;

type Spawn = (request: SpawnOptions, onSpawned: (spawned: Spawned) => void) => SpawnedProcess;

/** Starts a new process instead of claiming a spare. */
export function startFresh(query: StartQuery, options: Options, spawn: Spawn): LaunchPlan["start"] {
  return async ({ ask, onSpawned, prompts, signal, ...called }) => {
    await checkAnswers([options.cwd, options.pathToClaudeCodeExecutable]);
    if (signal.aborted) throw new Error("The process was stopped before it started.");
    const spawnClaudeCodeProcess: Options["spawnClaudeCodeProcess"] = (request) => spawn(request, onSpawned);
    const bound = { canUseTool: ask, hooks: hooksOf(called, options.hooks), spawnClaudeCodeProcess };
    return Promise.resolve(query({ prompt: prompts, options: { ...options, ...bound } }));
  };
}

/** Throws `NoAnswerError`: a spawn waits for its folder and its program, and this whole process with it. */
async function checkAnswers(paths: readonly (string | undefined)[]): Promise<void> {
  for (const path of paths) if (path !== undefined) await stat(path).catch(otherwise(undefined));
}

/** Goes on with a process that another server has started, under the rules of this one. What else the options say it was started with. */
export function goOn(query: StartQuery, options: Options, { process, spawned }: Attachment): LaunchPlan["start"] {
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

/** Claude Code runs without an agent that it does not know, and says so nowhere: nothing is handed to it before it has named its agents. */
export function requiringAgent(agent: string | undefined, start: LaunchPlan["start"]): LaunchPlan["start"] {
  if (agent === undefined) return start;
  return async (bound) => {
    let release: () => void = () => undefined;
    const isKnown = new Promise<void>((resolve) => (release = resolve));
    const query = await start({ ...bound, prompts: heldUntil(isKnown, bound.prompts) });
    const known = await Promise.race([agentsOf(query), once(bound.signal, "abort").then(() => undefined)]);
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

/** The items, once it is time. */
export async function* heldUntil<T>(ready: Promise<unknown>, source: AsyncIterable<T>): AsyncGenerator<T, void> {
  await ready;
  yield* source;
}

/** Undefined where it ended before it could tell, which its stream tells as well. */
async function agentsOf(query: Query): Promise<string[] | undefined> {
  const initialized = await query.initializationResult().catch(() => undefined);
  return initialized?.agents.map(({ name }) => name);
}
