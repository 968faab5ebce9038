import type { SpawnedProcess, SpawnOptions } from "@anthropic-ai/claude-agent-sdk";
import { spawn, type ChildProcess, type SpawnOptions as NodeSpawnOptions } from "node:child_process";
import type { Readable } from "node:stream";
import { PROCESS_VARIABLE } from "../../domain/names.ts";
import type { AgentReattach } from "../../engine/ports.ts";
import { hasPipe, isOutOfDescriptors, outOfDescriptorsText } from "../../security/descriptors.ts";
import type { Variables } from "../environment-records.ts";
import type { ShimConnection } from "../shim/connection.ts";
import { attachInShim, startInShim, type ReattachedProcess } from "../shim/shimmed-handle.ts";
import { Shims } from "../shim/shims.ts";
import type { ShimSettings } from "../shim/start-shim.ts";
import type { Guards } from "./guards.ts";
import { LastLines, limitLines } from "./output.ts";
import type { ProcessTag, TaggedServer } from "./process-tag.ts";
import { hasTag, endTagged } from "./tagged-processes.ts";
import { type TrackingMethod, wrapCommand } from "./isolation.ts";
import { Reaper, reaperProgram } from "./reaper.ts";
import type { Exit, ProcessHandle } from "./process-handle.ts";
import { DetachedProcesses } from "./detached-processes.ts";
import { killTree } from "./tree.ts";
const MAX_STDERR_CHARS = 4096;
/** Time limit for the end of a killed process, ms. Exceeded only if the process waits for a disk or the network. */
const GONE_WITHIN_MS = 5000;

interface SpawnerOptions {
  readonly guards: Guards;
  readonly server: TaggedServer;
  /** `undefined` if processes end with this server. */
  readonly shim?: ShimSettings | undefined;
}

interface ProcessStart {
  /** Id by which the process is found again, in its shim or by its tag. Unique in the store. */
  readonly name: string;
  /**
   * Wrapper command with arguments, see `wrapCommand`. With a wrapper, the supervised pid is the wrapper's, and the command is
   * a child of the wrapper.
   */
  readonly wrapper?: readonly string[];
  /** Epoch of the session; 0 for a spare. */
  readonly epoch?: number;
  /** Environment record of the process, which the shim hands to the next owner. Default: {}. */
  readonly record?: Variables;
}

type Command = Pick<SpawnOptions, "args" | "command" | "cwd" | "env">;
type Followed = Omit<ProcessHandle, "fault" | "inShim" | "stderrTail">;

/** A process of `spawnHere`. Nobody reads its pipes yet. */
export interface SpawnedHere extends Pick<ProcessHandle, "exit" | "gone" | "kill"> {
  readonly child: ChildProcess & { readonly stdout: Readable; readonly stderr: Readable };
}

/**
 * Starts Claude Code processes. Without a shim, a process ends with this server, even after `SIGKILL`; behind a shim, the next
 * server can attach to the process.
 */
export class Spawner {
  readonly shims: Shims | undefined;
  readonly #server: TaggedServer;
  readonly #guards: Guards;
  readonly #reaper: Reaper | undefined;
  #shim: ShimConnection | undefined;

  constructor({ guards, server, shim }: SpawnerOptions) {
    this.#server = server;
    this.#guards = guards;
    const { needsReaper, prlimit } = this.#guards;
    this.#reaper = needsReaper ? new Reaper(prlimit) : undefined;
    this.shims = shim && new Shims(shim, needsReaper ? reaperProgram(prlimit) : undefined);
  }

  /** Starts reaper and shim ahead of the first process. Rejects if the reaper cannot start. */
  async startGuards(): Promise<void> {
    this.#reaper?.ready();
    await this.shims?.own();
  }

  /** See `AgentRuntime`. */
  leaseRenewed(forMs: number): void {
    this.shims?.leaseRenewed(forMs);
    this.#reaper?.leaseRenewed(forMs);
  }

  get trackingMethod(): TrackingMethod {
    return this.#guards.trackingMethod;
  }

  /** Resolves once the shim answers, or has failed to start. Call before `spawn`. */
  async ready(): Promise<void> {
    this.#shim = await this.shims?.own();
  }

  spawn(request: SpawnOptions, onSpawned: (spawned: ProcessHandle) => void, start: ProcessStart): SpawnedProcess {
    const shim = this.#shim;
    if (shim && this.shims && !shim.isClosed) return this.#spawnBehind(shim, { request, onSpawned, start });
    const { child, followed } = this.#start(request, start, (command, args, options) =>
      spawn(command, args, { ...options, stdio: "pipe" }),
    );
    // Without free file descriptors, Node creates no pipes.
    if (!hasPipe(child.stdin)) throw new Error(outOfDescriptorsText());
    child.stdin.on("error", () => undefined);
    const stderr = new LastLines(MAX_STDERR_CHARS);
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => stderr.take(chunk));
    onSpawned({
      ...followed,
      stderrTail: () => stderr.text,
      inShim: undefined,
      fault: limitLines(child, followed.kill),
    });
    return child;
  }

  /** Starts a program without input that ends with this server, even if the server uses a shim. */
  spawnHere(request: Command, start: Pick<ProcessStart, "name" | "wrapper">): SpawnedHere {
    const { child, followed } = this.#start(request, start, (command, args, options) =>
      spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] }),
    );
    if (!hasPipe(child.stdout) || !hasPipe(child.stderr)) throw new Error(outOfDescriptorsText());
    const { exit, gone, kill } = followed;
    return { child, exit, gone, kill };
  }

  /** Attaches to a process left in a shim by a former server. Rejects with the reason if impossible. */
  async attach(processTag: string, { epoch, line, shim }: AgentReattach["reattach"]): Promise<ReattachedProcess> {
    if (!this.shims) throw new Error("this server uses no shims");
    const connection = await this.shims.connectTo(shim);
    return attachInShim(connection, { id: processTag, epoch, line, shim, guards: this.#guards });
  }

  #spawnBehind(
    connection: ShimConnection,
    {
      onSpawned,
      request,
      start,
    }: { request: SpawnOptions; onSpawned: (spawned: ProcessHandle) => void; start: ProcessStart },
  ): SpawnedProcess {
    const { pid, startedAt } = connection;
    const tag = this.#guards.newTag({ store: this.#server.store, pid, startedAt }, start.name);
    const shim = this.shims?.refOf(connection);
    if (!shim) throw new Error("there is no shim");
    const { epoch = 0, name: id, record = {} } = start;
    const command = { ...this.#commandOf(request, start, tag), record };
    return startInShim(connection, { id, epoch, shim, tag, command, guards: this.#guards }, onSpawned);
  }

  /** Starts a process as a child of this server. `launch` chooses the pipes. */
  #start<T extends ChildProcess>(
    request: Command,
    start: ProcessStart,
    launch: (command: string, args: string[], options: Omit<NodeSpawnOptions, "stdio">) => T,
  ): { readonly child: T; readonly followed: Followed } {
    const tag = this.#guards.newTag(this.#server, start.name);
    const { args, command, cwd, env } = this.#commandOf(request, start, tag);
    // Before `spawn`, because no process may start without a reaper.
    this.#reaper?.ready();
    // Detached, so that Ctrl-C in the terminal reaches only the server, which records the interruption before ending processes.
    const child = launch(command, args, { cwd, env, detached: process.platform !== "win32", windowsHide: true });
    // Prevents an uncaught error; `#follow` reports the failed spawn.
    child.on("error", () => undefined);
    return { child, followed: this.#follow(child, tag) };
  }

  #commandOf(request: Command, { wrapper = [] }: ProcessStart, tag: ProcessTag) {
    // The Agent SDK starts scripts with the first `node` in the session's `PATH`, possibly a repository's.
    const program = request.command === "node" ? process.execPath : request.command;
    const [command, args] = this.#guards.wrap(tag, ...wrapCommand(wrapper, program, request.args));
    return { command, args, cwd: request.cwd, env: { ...request.env, [PROCESS_VARIABLE]: tag.value } };
  }

  #follow(child: ChildProcess, tag: ProcessTag): Followed {
    const { pid } = child;
    const exit = new Promise<Exit>((resolve) => {
      child.once("exit", (code, signal) => resolve(this.#guards.exitOf({ code, signal })));
      child.once("error", (error) => resolve({ code: null, signal: null, error: withDescriptorsText(error) }));
    });
    const endAll = async () => endTagged((found) => hasTag(found, tag), GONE_WITHIN_MS).catch(() => undefined);
    const detached = new DetachedProcesses({ tag, pid, isIsolated: this.#guards.isIsolated });
    const common = { pid, exit, detached };
    if (pid === undefined) return { ...common, gone: exit, kill: () => undefined };
    this.#reaper?.watch(pid, tag);
    const gone = exit.then(endAll).then(() => this.#reaper?.forget(pid));
    // After the exit, the pid may be another process's.
    const hasExited = () => child.exitCode !== null || child.signalCode !== null;
    const kill = () => void (hasExited() ? Promise.resolve() : killTree(pid)).catch(() => undefined).then(endAll);
    return { ...common, gone, kill };
  }
}

function withDescriptorsText(error: Error): Error {
  return isOutOfDescriptors(error) ? new Error(outOfDescriptorsText(), { cause: error }) : error;
}
