import type { SpawnedProcess, SpawnOptions } from "@anthropic-ai/claude-agent-sdk";
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { PROCESS_VARIABLE } from "../../domain/names.ts";
import { findProgram } from "../../security/programs.ts";
import { hasPipe, isOutOfDescriptors, outOfDescriptorsText } from "../../security/descriptors.ts";
import { LastLines, LineLimit } from "./output.ts";
import { processTagOf, TAG_COUNT, type ProcessTag, type TaggedServer } from "./process-tag.ts";
import { hasTag, endTagged } from "./tagged-processes.ts";
import { type TrackingMethod, wrapCommand } from "./isolation.ts";
import { Reaper } from "./reaper.ts";
import { DetachedProcesses } from "./detached-processes.ts";
import { killTree } from "./tree.ts";
const MAX_STDERR_CHARS = 4096;
/** A process that was killed is gone within milliseconds, unless it waits for a disk or the network, ms. */
const GONE_WITHIN_MS = 5000;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
}

export interface Spawned {
  readonly pid: number | undefined;
  /** The last words of the process on stderr, a few kilobytes at most. */
  stderrTail(): string;
  /** Why this server has ended it, where its output was nothing that can be read. */
  fault(): string | undefined;
  readonly exit: Promise<Exit>;
  /** Resolves when it has ended and nothing is left of what it has started. */
  readonly gone: Promise<unknown>;
  /** SIGKILL to it and to all that it has started. */
  kill(): void;
  /** What it has started and no longer knows of. */
  readonly detached: DetachedProcesses;
}

interface SpawnerOptions {
  readonly server: TaggedServer;
  /** Leaves out the Linux mechanism, so that the general one can be tested there. */
  readonly forceReaper: boolean;
  /** What gives each process a pid namespace of its own, see `pidNamespace`; nothing where they have none. */
  readonly isolation?: readonly string[] | undefined;
}

interface Start {
  /** Found again by it. Unique in the store. */
  readonly name: string;
  /** Stands before the command; the process that is followed is then the wrapper's, with the command below it. */
  readonly wrapper?: readonly string[];
}

/** Starts processes that do not outlive this server, whatever ends it. */
export class Spawner {
  readonly #server: TaggedServer;
  readonly #isolation: readonly string[];
  readonly #setpriv: string | undefined;
  readonly #prlimit: string | undefined;
  readonly #reaper: Reaper | undefined;
  #count = 0;

  constructor({ forceReaper, isolation = [], server }: SpawnerOptions) {
    this.#server = server;
    this.#isolation = isolation;
    this.#setpriv = forceReaper || process.platform !== "linux" ? undefined : findProgram("setpriv", process.env);
    this.#prlimit = canNumber() ? findProgram("prlimit", process.env) : undefined;
    // A namespace ends with the process that the kernel ends with us; everything else needs the reaper, which outlives the server.
    const endsAlone = this.#setpriv !== undefined && isolation.length > 0;
    this.#reaper = endsAlone ? undefined : new Reaper(this.#prlimit);
  }

  /** Starts what the first process would start. Throws as `spawn` does. */
  prepare(): void {
    this.#reaper?.ready();
  }

  /** How what is started is found again when it is to end. */
  get trackingMethod(): TrackingMethod {
    if (this.#isolation.length > 0) return "pid namespace";
    if (process.platform === "win32") return "tree";
    return this.#prlimit === undefined ? "variable" : "variable and number";
  }

  spawn(request: SpawnOptions, onSpawned: (spawned: Spawned) => void, { name, wrapper = [] }: Start): SpawnedProcess {
    const tag = this.#newTag(name);
    const [command, args] = this.#guarded(tag, ...wrapCommand(wrapper, request.command, request.args));
    const { cwd, env } = request;
    // First: a process that the reaper cannot be told of must not be started.
    this.prepare();
    // Detached: a Ctrl-C in the terminal reaches the server only, which records the interruption before it ends anything.
    const child = spawn(command, args, {
      cwd,
      env: { ...env, [PROCESS_VARIABLE]: tag.value },
      stdio: "pipe",
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    // Its exit is read from `exit`; a spawn error must not bring the server down.
    child.on("error", () => undefined);
    // Node then makes no pipes either.
    if (!hasPipe(child.stdin)) throw new Error(outOfDescriptorsText());
    child.stdin.on("error", () => undefined);
    const followed = this.#follow(child, tag);
    onSpawned({ ...followed, fault: limitLines(child, followed.kill) });
    return child;
  }

  #newTag(name: string): ProcessTag {
    this.#count = (this.#count + 1) % TAG_COUNT;
    const tag = processTagOf(this.#server, name, this.#count);
    return this.#prlimit === undefined ? { ...tag, number: undefined } : tag;
  }

  /** The kernel is asked to signal the child when its parent dies; pid and arguments stay. */
  #guarded(tag: ProcessTag, command: string, args: readonly string[]): [string, string[]] {
    const signal = this.#isolation.length > 0 ? "KILL" : "TERM";
    const guards = [
      ...(this.#setpriv === undefined ? [] : [this.#setpriv, "--pdeathsig", signal, "--"]),
      ...(this.#prlimit === undefined ? [] : [this.#prlimit, `--locks=${tag.number ?? ""}:`, "--"]),
    ];
    return wrapCommand([...guards, ...this.#isolation], command, args);
  }

  #follow(child: ChildProcessWithoutNullStreams, tag: ProcessTag): Omit<Spawned, "fault"> {
    const { pid } = child;
    const stderr = new LastLines(MAX_STDERR_CHARS);
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => stderr.take(chunk));
    const stderrTail = () => stderr.text;
    const exit = new Promise<Exit>((resolve) => {
      child.once("exit", (code, signal) => resolve(this.#exitOf(code, signal)));
      child.once("error", (error) => resolve({ code: null, signal: null, error: explained(error) }));
    });
    const endAll = async () => endTagged((found) => hasTag(found, tag), GONE_WITHIN_MS).catch(() => undefined);
    const detached = new DetachedProcesses({ tag, pid, isIsolated: this.#isolation.length > 0 });
    if (pid === undefined) return { pid, exit, gone: exit, kill: () => undefined, detached, stderrTail };
    this.#reaper?.watch(pid, tag);
    const gone = exit.then(endAll).then(() => this.#reaper?.forget(pid));
    const kill = () =>
      void killTree(pid)
        .catch(() => undefined)
        .then(endAll);
    return { pid, exit, gone, kill, detached, stderrTail };
  }

  /** What is first in a namespace cannot die of the signal that has ended the command: it tells it as a shell does. */
  #exitOf(code: number | null, signal: NodeJS.Signals | null): Exit {
    if (this.#isolation.length === 0 || code === null || code <= SIGNALLED) return { code, signal };
    const named = Object.entries(constants.signals).find(([, number]) => number === code - SIGNALLED)?.[0];
    return named !== undefined && isSignal(named) ? { code: null, signal: named } : { code, signal };
  }
}

function explained(error: Error): Error {
  return isOutOfDescriptors(error) ? new Error(outOfDescriptorsText(), { cause: error }) : error;
}

/** Bounds what the SDK reads of the child, which ends where it passes them. The returned function says why it was ended. */
function limitLines(child: ChildProcessWithoutNullStreams, kill: () => void): Spawned["fault"] {
  let fault: string | undefined;
  const { stdout } = child;
  const limit = new LineLimit((why) => {
    fault = `${why}, and was ended`;
    stdout.destroy();
    kill();
  });
  stdout.on("error", () => undefined);
  // The SDK reads `stdout`; Node itself keeps to `stdio`.
  child.stdout = stdout.pipe(limit);
  return () => fault;
}

const SIGNALLED = 128;

function isSignal(name: string): name is NodeJS.Signals {
  return name in constants.signals;
}

/** Whether the limit that carries the number can be set: its hard limit was not lowered. */
function canNumber(): boolean {
  try {
    return /^Max file locks +\S+ +unlimited/m.test(readFileSync("/proc/self/limits", "utf8"));
  } catch {
    return false;
  }
}
