import type { Approver } from "../../approvers/approver.ts";
import { APPROVERS } from "../../approvers/approvers.ts";
import type { ApproverName } from "../../domain/approvals/answer-source.ts";
import { ConfigError } from "../error.ts";
import { MAX_TIMER_MS } from "../../domain/timer.ts";

/** The approval chain as an operator writes it: `user:300000,webhook,caller`. */

export interface Approvals {
  readonly approvers: readonly ApproverName[];
  /** How long a request is with each of them, ms; with the caller as --permission-timeout-ms says. The console may have 0. */
  readonly approverTimeoutMs: Readonly<Record<ApproverName, number>>;
}

const MIN_MS = 1_000;

const NAMES = APPROVERS.map(({ name }) => name);

/** An approver, and ms where its time is said. */
export const APPROVAL_ENTRY = new RegExp(`^(${NAMES.join("|")})(?::(\\d{1,12}))?$`);

/** What APPROVAL_ENTRY allows, in words. */
export const APPROVAL_ENTRIES = `names, each as name or name:ms, of ${NAMES.join(", ")}`;

/** `callersMs` is --permission-timeout-ms. Throws ConfigError. */
export function parseApprovals(words: readonly string[], callersMs = 0): Approvals {
  const approvers: ApproverName[] = [];
  const approverTimeoutMs = usualTimes(callersMs);
  for (const word of words) {
    const [, name, digits] = APPROVAL_ENTRY.exec(word) ?? [];
    const found = APPROVERS.find((each) => each.name === name);
    if (!found) throw new ConfigError(`--approvals: ${JSON.stringify(word)} is not one of the ${APPROVAL_ENTRIES}.`);
    const approver = found.name;
    if (approvers.includes(approver)) throw new ConfigError(`--approvals names ${approver} twice. Name each once.`);
    approvers.push(approver);
    if (digits !== undefined) approverTimeoutMs[approver] = timeOf(found, Number(digits));
  }
  return { approvers, approverTimeoutMs };
}

function usualTimes(callersMs: number): Record<ApproverName, number> {
  const times = APPROVERS.flatMap(({ name, time }) =>
    "usualMs" in time ? [[name, time.atLeastCallers ? Math.max(time.usualMs, callersMs) : time.usualMs] as const] : [],
  );
  return Object.fromEntries(times);
}

function timeOf({ name, time }: Approver, ms: number): number {
  if ("elsewhere" in time) {
    throw new ConfigError(`--approvals: ${name} has no time limit here. Set ${time.elsewhere}.`);
  }
  const isWithoutTurn = time.mayHaveNone === true && ms === 0;
  if (isWithoutTurn || (ms >= MIN_MS && ms <= MAX_TIMER_MS)) return ms;
  const range = `from ${String(MIN_MS)} to ${String(MAX_TIMER_MS)}`;
  throw new ConfigError(`--approvals: the time of ${name} is ${String(ms)}: must be a whole number of ms ${range}.`);
}
