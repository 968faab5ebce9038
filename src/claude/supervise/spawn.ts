import type { SpawnedProcess, SpawnOptions } from "@anthropic-ai/claude-agent-sdk";
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { Reaper } from "./reaper.ts";
import { through } from "./wrapper.ts";

const STDERR_KEPT = 4096;

export interface Spawned {
  readonly pid: number | undefined;
  /** The last words of the process on stderr, a few kilobytes at most. */
  stderrTail(): string;
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null; error?: Error }>;
}

/** Starts processes that do not outlive this server, whatever ends it. */
export class Spawner {
  readonly #setpriv: string | undefined;
  readonly #reaper = new Reaper();

  /** `forceReaper` leaves out the Linux mechanism, so that the general one can be tested there. */
  constructor(options: { forceReaper: boolean }) {
    this.#setpriv = options.forceReaper ? undefined : findSetpriv();
  }

  /** `wrapper` stands before the command; the process that is followed is then the wrapper's, with the command below it. */
  spawn(request: SpawnOptions, onSpawned: (spawned: Spawned) => void, wrapper: readonly string[] = []): SpawnedProcess {
    const [command, args] = this.#guarded(...through(wrapper, request.command, request.args));
    const { cwd, env } = request;
    // Detached: a Ctrl-C in the terminal reaches the server only, which records the interruption before it ends anything.
    const child = spawn(command, args, {
      cwd,
      env,
      stdio: "pipe",
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    // Its exit is read from `exit`; a spawn error must not bring the server down.
    child.on("error", () => undefined);
    child.stdin.on("error", () => undefined);
    onSpawned(this.#follow(child));
    return child;
  }

  #guarded(command: string, args: string[]): [string, string[]] {
    if (this.#setpriv === undefined) return [command, args];
    return [this.#setpriv, ["--pdeathsig", "TERM", "--", command, ...args]];
  }

  #follow(child: ChildProcessWithoutNullStreams): Spawned {
    const { pid } = child;
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr = (stderr + chunk).slice(-STDERR_KEPT);
    });
    const exit = new Promise<Awaited<Spawned["exit"]>>((resolve) => {
      child.once("exit", (code, signal) => resolve({ code, signal }));
      child.once("error", (error) => resolve({ code: null, signal: null, error }));
    });
    if (pid !== undefined && this.#setpriv === undefined) {
      this.#reaper.watch(pid);
      void exit.then(() => this.#reaper.forget(pid));
    }
    return { pid, exit, stderrTail: () => stderr };
  }
}

/** util-linux's setpriv asks the kernel to send TERM to the child when its parent dies; it keeps the pid. */
function findSetpriv(): string | undefined {
  if (process.platform !== "linux") return undefined;
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, "setpriv")).find((file) => existsSync(file));
}
