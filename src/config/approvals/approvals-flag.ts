import type { Approver } from "../../approvers/approver.ts";
import { APPROVERS } from "../../approvers/approvers.ts";
import { CALLER, type ApproverName } from "../../domain/approvals/answer-source.ts";
import { ConfigError } from "../error.ts";
import { MAX_TIMER_MS } from "../../domain/timer.ts";

/** Parses the approval chain as an operator writes it: `user:300000,webhook,caller`. */

export interface Approvals {
  readonly approvers: readonly ApproverName[];
  /** Time of each approver except the caller to answer, ms. The console may have 0. */
  readonly approverTimeoutMs: Readonly<Record<ApproverName, number>>;
  /** Time of the calling model, ms, counted from its first sight of the request. */
  readonly callerMs: number;
}

const MIN_MS = 1_000;

const NAMES = APPROVERS.map(({ name }) => name);

/** Name of an approver, with an optional time, ms. */
export const APPROVAL_ENTRY = new RegExp(`^(${NAMES.join("|")})(?::(\\d{1,12}))?$`);

/** Values that `APPROVAL_ENTRY` allows, in words. */
export const APPROVAL_ENTRIES = `names, each as name or name:ms, of ${NAMES.join(", ")}`;

/** Throws ConfigError. */
export function parseApprovals(words: readonly string[]): Approvals {
  const approvers: ApproverName[] = [];
  const times: Record<ApproverName, number> = {};
  for (const word of words) {
    const [, name, digits] = APPROVAL_ENTRY.exec(word) ?? [];
    const found = APPROVERS.find((each) => each.name === name);
    if (!found) throw new ConfigError(`--approvals: ${JSON.stringify(word)} is not one of the ${APPROVAL_ENTRIES}.`);
    const approver = found.name;
    if (approvers.includes(approver)) throw new ConfigError(`--approvals names ${approver} twice. Name each once.`);
    approvers.push(approver);
    if (digits !== undefined) times[approver] = checkTime(found, Number(digits));
  }
  const { [CALLER]: callerMs = 0, ...approverTimeoutMs } = { ...defaultTimes(times[CALLER]), ...times };
  return { approvers, approverTimeoutMs, callerMs };
}

/** Returns default times. `callersMs` is the time of the calling model, if given. */
function defaultTimes(callersMs = 0): Record<ApproverName, number> {
  const times = APPROVERS.map(({ name, time: { atLeastCallers = false, usualMs } }) => {
    return [name, atLeastCallers ? Math.max(usualMs, callersMs) : usualMs] as const;
  });
  return Object.fromEntries(times);
}

function checkTime({ name, time }: Approver, ms: number): number {
  const isWithoutTurn = time.mayHaveNone === true && ms === 0;
  if (isWithoutTurn || (ms >= MIN_MS && ms <= MAX_TIMER_MS)) return ms;
  const range = `from ${String(MIN_MS)} to ${String(MAX_TIMER_MS)}`;
  throw new ConfigError(`--approvals: the time of ${name} is ${String(ms)}: must be a whole number of ms ${range}.`);
}
