import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { findProgram } from "../../security/programs.ts";
import { wrapCommand, type TrackingMethod } from "./isolation.ts";
import { processTagOf, TAG_COUNT, type ProcessTag, type TaggedServer } from "./process-tag.ts";
import type { Exit } from "./spawned.ts";

export interface GuardOptions {
  /** Leaves out the Linux mechanism, so that the general one can be tested there. */
  readonly forceReaper: boolean;
  /** What gives each process a pid namespace of its own, see `pidNamespace`; nothing where they have none. */
  readonly isolation?: readonly string[] | undefined;
}

/** Programs of the machine that guard a process, as far as it has them. */
interface Guarding {
  readonly setpriv: string | undefined;
  readonly prlimit: string | undefined;
}

/** What stands before the command of each Claude Code, so that it does not outlive who has started it and is found again. */
export class Guards {
  readonly isIsolated: boolean;
  /** Everything needs the reaper, which outlives the starter, but a namespace: that ends with the process that the kernel ends. */
  readonly needsReaper: boolean;
  readonly prlimit: string | undefined;
  readonly #isolation: readonly string[];
  readonly #setpriv: string | undefined;
  #count = 0;

  /** Finds the programs in PATH of this server. */
  static async find({ forceReaper, isolation = [] }: GuardOptions): Promise<Guards> {
    const isPlain = forceReaper || process.platform !== "linux";
    const setpriv = isPlain ? undefined : await findProgram("setpriv", process.env);
    const prlimit = canNumber() ? await findProgram("prlimit", process.env) : undefined;
    return new Guards(isolation, { setpriv, prlimit });
  }

  private constructor(isolation: readonly string[], { prlimit, setpriv }: Guarding) {
    this.#isolation = isolation;
    this.isIsolated = isolation.length > 0;
    this.#setpriv = setpriv;
    this.prlimit = prlimit;
    this.needsReaper = this.#setpriv === undefined || !this.isIsolated;
  }

  /** How what is started is found again when it is to end. */
  get trackingMethod(): TrackingMethod {
    if (this.isIsolated) return "pid namespace";
    if (process.platform === "win32") return "tree";
    return this.prlimit === undefined ? "variable" : "variable and number";
  }

  /** `starter` is the parent of the process, `name` unique in the store. */
  newTag(starter: TaggedServer, name: string): ProcessTag {
    this.#count = (this.#count + 1) % TAG_COUNT;
    const tag = processTagOf(starter, name, this.#count);
    return this.prlimit === undefined ? { ...tag, number: undefined } : tag;
  }

  /** The kernel is asked to signal the process when its parent dies; pid and arguments stay. */
  wrap(tag: ProcessTag, command: string, args: readonly string[]): [string, string[]] {
    const signal = this.isIsolated ? "KILL" : "TERM";
    const guards = [
      ...(this.#setpriv === undefined ? [] : [this.#setpriv, "--pdeathsig", signal, "--"]),
      ...(this.prlimit === undefined ? [] : [this.prlimit, `--locks=${tag.number ?? ""}:`, "--"]),
    ];
    return wrapCommand([...guards, ...this.#isolation], command, args);
  }

  /** What is first in a namespace cannot die of the signal that has ended the command: it tells it as a shell does. */
  exitOf(exit: Exit): Exit {
    const { code } = exit;
    if (!this.isIsolated || code === null || code <= SIGNALLED) return exit;
    const named = Object.entries(constants.signals).find(([, number]) => number === code - SIGNALLED)?.[0];
    return named !== undefined && isSignal(named) ? { ...exit, code: null, signal: named } : exit;
  }
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
