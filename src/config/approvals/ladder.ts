import type { Approver } from "../../approvers/approver.ts";
import { APPROVERS } from "../../approvers/approvers.ts";
import type { Rung } from "../../domain/approvals/rung.ts";
import { ConfigError } from "../error.ts";
import { LONGEST_MS } from "../setting.ts";

/** The ladder as an operator writes it: `user:300000,webhook,caller`. */

export interface Ladder {
  readonly rungs: readonly Rung[];
  /** How long a request is with each of them, ms; with the caller as --permission-timeout-ms says. The console may have 0. */
  readonly rungMs: Readonly<Record<Rung, number>>;
}

const LEAST_MS = 1_000;

const NAMES = APPROVERS.map(({ name }) => name);

/** A rung, and ms where its time is said. */
export const RUNG_WORD = new RegExp(`^(${NAMES.join("|")})(?::(\\d{1,12}))?$`);

/** What RUNG_WORD allows, in words. */
export const RUNG_WORDS = `names, each as name or name:ms, of ${NAMES.join(", ")}`;

/** `callersMs` is --permission-timeout-ms. Throws ConfigError. */
export function ladderOf(words: readonly string[], callersMs = 0): Ladder {
  const rungs: Rung[] = [];
  const rungMs = usualTimes(callersMs);
  for (const word of words) {
    const [, name, digits] = RUNG_WORD.exec(word) ?? [];
    const approver = APPROVERS.find((each) => each.name === name);
    if (!approver) throw new ConfigError(`--approvals: ${JSON.stringify(word)} is none of the ${RUNG_WORDS}.`);
    const rung = approver.name;
    if (rungs.includes(rung)) throw new ConfigError(`--approvals names ${rung} twice. Name each once.`);
    rungs.push(rung);
    if (digits !== undefined) rungMs[rung] = timeOf(approver, Number(digits));
  }
  return { rungs, rungMs };
}

function usualTimes(callersMs: number): Record<Rung, number> {
  const times = APPROVERS.flatMap(({ name, time }) =>
    "usualMs" in time ? [[name, time.atLeastCallers ? Math.max(time.usualMs, callersMs) : time.usualMs] as const] : [],
  );
  return Object.fromEntries(times);
}

function timeOf({ name, time }: Approver, ms: number): number {
  if ("elsewhere" in time) {
    throw new ConfigError(`--approvals: ${name} takes no time there. Set ${time.elsewhere}.`);
  }
  const isWithoutTurn = time.mayHaveNone === true && ms === 0;
  if (isWithoutTurn || (ms >= LEAST_MS && ms <= LONGEST_MS)) return ms;
  const range = `from ${String(LEAST_MS)} to ${String(LONGEST_MS)}`;
  throw new ConfigError(`--approvals: the time of ${name} is ${String(ms)}: must be a whole number of ms ${range}.`);
}
