import { spawn, type ChildProcess } from "node:child_process";
import { whenDead } from "../claude/supervise/tree.ts";
import { Refusal } from "./exchange.ts";

/** Programs that a shim starts beside Claude Code: the reaper, and its daemon again. */

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

export interface RestartProgram extends Program {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Holds the reaper's input open. After the end of this process, the reaper ends all registered processes. */
export class ReaperPipe {
  readonly #program: Program | undefined;
  #child: ChildProcess | undefined;
  #loaded: Promise<boolean> | undefined;
  /** Registrations by pid, repeated to a reaper that replaces a dead one. */
  readonly #watched = new Map<string, string>();

  /** Sends nothing without `program`. */
  constructor(program: Program | undefined) {
    this.#program = program;
  }

  /** Starts the reaper if needed. Throws `Refusal` on failure, because no process may start that nothing could end. */
  ready(): void {
    if (!this.#program || this.#child) return;
    const { args, command } = this.#program;
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"], detached: true, env: {} });
    child.on("error", () => undefined);
    // Node makes no pipe when out of descriptors.
    const input: unknown = child.stdin;
    if (input === undefined || input === null) throw new Refusal("the reaper cannot be started");
    child.stdin.on("error", () => undefined);
    this.#child = child;
    for (const line of this.#watched.values()) child.stdin.write(line);
    whenDead(child, (restart) => {
      this.#child = undefined;
      if (restart && this.#watched.size > 0) this.ready();
    });
    this.#loaded = new Promise((resolve) => {
      child.stdout
        .on("error", () => undefined)
        .once("data", () => {
          resolve(true);
          child.stdout.destroy();
        })
        .once("close", () => resolve(false));
    });
  }

  /** Starts the reaper. Resolves once the reaper has loaded its files. Rejects with `Refusal` on failure. */
  async load(): Promise<void> {
    this.ready();
    if ((await this.#loaded) === false) throw new Refusal("the reaper cannot be started");
  }

  /** Sends a line `+PID NUMBER VALUE` or `-PID`. */
  send(line: string): void {
    const [, sign, pid = ""] = /^([+-])(\d+)/.exec(line) ?? [];
    if (sign === "+") this.#watched.set(pid, `${line}\n`);
    else this.#watched.delete(pid);
    this.#child?.stdin?.write(`${line}\n`);
  }
}

/** Maximum restarts within `RESTART_WINDOW_MS`. */
const MAX_RESTARTS = 3;
const RESTART_WINDOW_MS = 600_000;
/** Multiple of `afterMs` that a started daemon has to connect. */
const START_FACTOR = 5;

interface RestartOptions {
  /** `undefined` if the shim does not bring the daemon back. */
  readonly program: RestartProgram | undefined;
  /** Wait for an owner before the first restart, ms. */
  readonly afterMs: number;
  readonly log: (text: string) => void;
  /** Called after `afterMs` without an owner. True if a restart is worthwhile. */
  readonly isWanted: () => boolean;
  readonly onUnwanted: () => void;
}

/** Starts the daemon again while no owner is connected. */
export class DaemonRestarter {
  readonly #restart: RestartOptions;
  #timer: NodeJS.Timeout | undefined;
  /** Times of restarts, by the monotonic clock. */
  #times: number[] = [];

  constructor(restart: RestartOptions) {
    this.#restart = restart;
  }

  ownerCame(): void {
    clearTimeout(this.#timer);
  }

  ownerWent(): void {
    this.#wait(this.#restart.afterMs);
  }

  #wait(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#due(), ms);
  }

  #due(): void {
    const { afterMs, isWanted, onUnwanted, program } = this.#restart;
    if (!isWanted()) return onUnwanted();
    if (!program) return;
    const now = performance.now();
    this.#times = this.#times.filter((time) => now - time < RESTART_WINDOW_MS);
    const [oldest = now] = this.#times;
    if (this.#times.length >= MAX_RESTARTS) {
      this.#wait(RESTART_WINDOW_MS - (now - oldest));
      return;
    }
    this.#times.push(now);
    this.#run(program);
    this.#wait(afterMs * START_FACTOR);
  }

  #run({ args, command, cwd, env }: RestartProgram): void {
    const { log } = this.#restart;
    log("no owner: the daemon is started again");
    try {
      const child = spawn(command, args, { cwd, env, stdio: "ignore", detached: true });
      child.on("error", (error) => log(`the daemon cannot be started: ${error.message}`));
      child.on("exit", (code, signal) => log(`the restart command has ended with ${String(signal ?? code)}`));
    } catch (error) {
      log(`the daemon cannot be started: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}
