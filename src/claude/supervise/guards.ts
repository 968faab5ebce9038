import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { findProgram } from "../../security/find-program.ts";
import { wrapCommand, type TrackingMethod } from "./isolation.ts";
import { createProcessTag, TAG_COUNT, type ProcessTag, type TaggedServer } from "./process-tag.ts";
import type { Exit } from "./process-handle.ts";

export interface GuardOptions {
  /** Skips `setpriv`, so that tests on Linux cover the reaper. */
  readonly forceReaper: boolean;
  /** Words from `pidNamespace`; none without isolation. */
  readonly isolation?: readonly string[] | undefined;
}

/** Paths of guard programs; `undefined` if missing or unusable. */
interface GuardPrograms {
  readonly setpriv: string | undefined;
  readonly prlimit: string | undefined;
}

/** Prefixes the command of each Claude Code with guards, so that the process ends with its starter and can be found again. */
export class Guards {
  readonly isIsolated: boolean;
  /**
   * False only for `setpriv` with a pid namespace: the kernel ends the first process with the starter, and the namespace with
   * the first process. All other descendants need the reaper, which outlives the starter.
   */
  readonly needsReaper: boolean;
  readonly prlimit: string | undefined;
  readonly #isolation: readonly string[];
  readonly #setpriv: string | undefined;
  #count = 0;

  /** Searches `PATH` of this server for the programs. */
  static async find({ forceReaper, isolation = [] }: GuardOptions): Promise<Guards> {
    const isPlain = forceReaper || process.platform !== "linux";
    const setpriv = isPlain ? undefined : await findProgram("setpriv", process.env);
    const prlimit = canSetLockLimit() ? await findProgram("prlimit", process.env) : undefined;
    return new Guards(isolation, { setpriv, prlimit });
  }

  private constructor(isolation: readonly string[], { prlimit, setpriv }: GuardPrograms) {
    this.#isolation = isolation;
    this.isIsolated = isolation.length > 0;
    this.#setpriv = setpriv;
    this.prlimit = prlimit;
    this.needsReaper = this.#setpriv === undefined || !this.isIsolated;
  }

  get trackingMethod(): TrackingMethod {
    if (this.isIsolated) return "pid namespace";
    if (process.platform === "win32") return "tree";
    return this.prlimit === undefined ? "variable" : "variable and number";
  }

  /** `starter` is the parent of the process, `name` unique in the store. */
  newTag(starter: TaggedServer, name: string): ProcessTag {
    this.#count = (this.#count + 1) % TAG_COUNT;
    const tag = createProcessTag(starter, name, this.#count);
    return this.prlimit === undefined ? { ...tag, number: undefined } : tag;
  }

  /** Makes the kernel signal the process at the death of its parent. Pid and arguments stay unchanged. */
  wrap(tag: ProcessTag, command: string, args: readonly string[]): [string, string[]] {
    const signal = this.isIsolated ? "KILL" : "TERM";
    const guards = [
      ...(this.#setpriv === undefined ? [] : [this.#setpriv, "--pdeathsig", signal, "--"]),
      ...(this.prlimit === undefined ? [] : [this.prlimit, `--locks=${tag.number ?? ""}:`, "--"]),
    ];
    return wrapCommand([...guards, ...this.#isolation], command, args);
  }

  /**
   * Translates exit code 128 + n of a namespace to signal n: the first process cannot die of the signal that ended the command,
   * and reports the signal as a shell does.
   */
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

/** True if the limit for `number` can be set: its hard limit was not lowered. */
function canSetLockLimit(): boolean {
  try {
    return /^Max file locks +\S+ +unlimited/m.test(readFileSync("/proc/self/limits", "utf8"));
  } catch {
    return false;
  }
}
