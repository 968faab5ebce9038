import { Rung } from "../../domain/approvals/rung.ts";
import { ConfigError } from "../error.ts";
import { LONGEST_MS } from "../setting.ts";

/** The ladder as an operator writes it: `user:300000,webhook,caller`. */

export interface Ladder {
  readonly rungs: readonly Rung[];
  /** How long a request is with each of them, ms; with the caller as --permission-timeout-ms says. The console may have 0. */
  readonly rungMs: Readonly<Record<Exclude<Rung, "caller">, number>>;
}

/** Long enough to be called to a screen, and to read what is asked. The console has as long as callers where that is longer. */
const USUAL_MS = { user: 300_000, console: 600_000, webhook: 600_000 };
const LEAST_MS = 1_000;

/** A rung, and ms where its time is said. */
export const RUNG_WORD = /^(user|console|webhook|caller)(?::(\d{1,12}))?$/;

/** `callersMs` is --permission-timeout-ms. Throws ConfigError. */
export function ladderOf(words: readonly string[], callersMs = 0): Ladder {
  const rungs: Rung[] = [];
  const rungMs = { ...USUAL_MS, console: Math.max(USUAL_MS.console, callersMs) };
  for (const word of words) {
    const [, name, digits] = RUNG_WORD.exec(word) ?? [];
    const rung = Rung.parse(name);
    if (rungs.includes(rung)) throw new ConfigError(`--approvals names ${rung} twice. Name each rung once.`);
    rungs.push(rung);
    if (digits !== undefined) setTime(rungMs, rung, Number(digits));
  }
  return { rungs, rungMs };
}

function setTime(rungMs: Record<Exclude<Rung, "caller">, number>, rung: Rung, ms: number): void {
  if (rung === "caller") {
    throw new ConfigError("--approvals: caller takes no time there. Set --permission-timeout-ms.");
  }
  // Who looks at the page may answer at any time, also without a turn of his own.
  const isWithoutTurn = rung === "console" && ms === 0;
  if (!isWithoutTurn && (ms < LEAST_MS || ms > LONGEST_MS)) {
    const range = `from ${String(LEAST_MS)} to ${String(LONGEST_MS)}`;
    throw new ConfigError(`--approvals: the time of ${rung} is ${String(ms)}: must be a whole number of ms ${range}.`);
  }
  rungMs[rung] = ms;
}
