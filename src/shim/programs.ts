import { spawn, type ChildProcess } from "node:child_process";
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

  send(line: string): void {
    this.#child?.stdin?.write(`${line}\n`);
  }
}

/** The number of restarts within this time, ms. */
const MOST = 3;
const WITHIN_MS = 600_000;
/** A daemon that was started has this many times the first wait to connect. */
const PATIENCE = 5;

interface Restart {
  /** Undefined where the daemon is brought back by others, or not at all. */
  readonly program: RestartProgram | undefined;
  /** Wait for an owner before the first one, ms. */
  readonly afterMs: number;
  readonly log: (text: string) => void;
  /** Called when an owner did not come in time; whether it is worth a restart. */
  readonly isWanted: () => boolean;
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
    const { afterMs, isWanted, program } = this.#restart;
    if (!isWanted() || !program) return;
    const now = performance.now();
    this.#times = this.#times.filter((time) => now - time < WITHIN_MS);
    const [oldest = now] = this.#times;
    if (this.#times.length >= MOST) {
      this.#wait(WITHIN_MS - (now - oldest));
      return;
    }
    this.#times.push(now);
    this.#run(program);
    this.#wait(afterMs * PATIENCE);
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
