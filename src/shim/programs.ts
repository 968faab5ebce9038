import { spawn, type ChildProcess } from "node:child_process";
import { whenDead } from "../claude/supervise/tree.ts";
import { Refusal } from "./exchange.ts";

/** The programs that a shim starts beside Claude Code: the reaper, and the daemon that is to come back. */

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

export interface RestartProgram extends Program {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Holds the other end of the reaper's input: the reaper ends what it knows of when this process is gone. */
export class ReaperPipe {
  readonly #program: Program | undefined;
  #child: ChildProcess | undefined;
  #loaded: Promise<boolean> | undefined;
  /** Registrations to repeat to a reaper that replaces a dead one, by pid. */
  readonly #watched = new Map<string, string>();

  /** Without a program, nothing is sent. */
  constructor(program: Program | undefined) {
    this.#program = program;
  }

  /** Throws Refusal where it cannot be started: nothing may start that could not be ended. */
  ready(): void {
    if (!this.#program || this.#child) return;
    const { args, command } = this.#program;
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"], detached: true, env: {} });
    child.on("error", () => undefined);
    // Node makes no pipe when it runs out of descriptors.
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

  /** Starts it. Resolves when it needs its files no more. Rejects with Refusal where it cannot be started. */
  async load(): Promise<void> {
    this.ready();
    if ((await this.#loaded) === false) throw new Refusal("the reaper cannot be started");
  }

  /** A `+PID NUMBER VALUE` or `-PID` line. */
  send(line: string): void {
    const [, sign, pid = ""] = /^([+-])(\d+)/.exec(line) ?? [];
    if (sign === "+") this.#watched.set(pid, `${line}\n`);
    else this.#watched.delete(pid);
    this.#child?.stdin?.write(`${line}\n`);
  }
}

/** Restarts within RESTART_WINDOW_MS. */
const MAX_RESTARTS = 3;
const RESTART_WINDOW_MS = 600_000;
/** A daemon that was started has this many times the first wait to connect. */
const START_FACTOR = 5;

interface Restart {
  /** Undefined where the daemon is brought back by others, or not at all. */
  readonly program: RestartProgram | undefined;
  /** Wait for an owner before the first one, ms. */
  readonly afterMs: number;
  readonly log: (text: string) => void;
  /** Whether it is worth a restart; asked when no owner came in time. */
  readonly isWanted: () => boolean;
  readonly onUnwanted: () => void;
}

/** Brings the daemon back when no owner is connected. */
export class Restarts {
  readonly #restart: Restart;
  #timer: NodeJS.Timeout | undefined;
  /** On the monotonic clock. */
  #times: number[] = [];

  constructor(restart: Restart) {
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
      child.on("exit", (code, signal) => log(`what was to start the daemon has ended with ${String(signal ?? code)}`));
    } catch (error) {
      log(`the daemon cannot be started: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}
