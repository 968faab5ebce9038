import { type Bound, tighter } from "../../domain/approvals/risk.ts";
import type { ApproverName } from "../../domain/approvals/answer-source.ts";
import type { SupervisionOptions } from "../../domain/options/traits.ts";
import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import type { Budget } from "../../domain/budget.ts";
import type { PlanReserve } from "../../domain/plan.ts";
import { type Verify, verifyOf } from "../../domain/verification.ts";
import type { OnLimit, Priority } from "../../domain/waiting.ts";
import type { Rules } from "./rules.ts";

/** Terms of a client for its unattended sessions. */
interface UnattendedTerms {
  /** Fate of a request that can be shown to no client: `wait`, or `deny` at once. */
  readonly requests: "wait" | "deny";
  /** Maximum cost of unattended turns, USD. */
  readonly maxUsd: number;
}

/** Terms of the server for unattended sessions. */
export interface WhileUnattended {
  /** Time without a client that waits on, reads or follows the session until the session is unattended, ms. */
  readonly afterMs: number;
  /** Maximum running time of unattended turns without waits for decisions, ms. */
  readonly maxMs: number;
}

/** Terms for sessions that no client attends to. */
type UnattendedPolicy = UnattendedTerms & WhileUnattended;

/** Bounds of one session: the operator's `Limits`, narrowed by the session's own options. All times in ms. */
export interface Policy {
  /** Policy of the session at its start, stored with the session. */
  readonly begun: SessionPolicy;
  /** `begun`, tightened by the owner. The client that sends a prompt may add more (`turn-policy.ts`). */
  readonly here: SessionPolicy;
  /** Rules of the operator. Claude Code enforces a session's own rules. */
  readonly rules: Rules;
  /** Maximum risk that a caller may approve in the session. */
  readonly callerApproves: Bound;
  /** Maximum by the session's own options, also for callers that `callerApproves` does not bind. */
  readonly sessionApproves: Bound;
  /** Folder of the session, the base of paths in rules. */
  readonly cwd: string;
  /** Fate of a lost turn: `report` it, or `resume` by Claude Code's own means. */
  readonly onLost: "report" | "resume";
  /** Approvers in order. Empty: every request is denied. */
  readonly approvalChain: readonly ApproverName[];
  /** Time limits of approvers other than the caller, from the first showing of the request, or else from its arrival. */
  readonly approverTimeoutMs: Readonly<Record<ApproverName, number>>;
  /** Time limit that the caller chose as an approver, from the arrival of the request. */
  readonly requestTimeoutMs: number | undefined;
  /** Default time limit of the caller, from the first delivery. */
  readonly requestDeliveredMs: number;
  /** Maximum time limit of the caller, even for a request that the caller has seen late. */
  readonly requestMaxMs: number;
  /** Time limit of a request that no approver was shown. */
  readonly requestUnseenMs: number;
  /** Time limit from spawn to Claude Code's answer to `initialize`. */
  readonly initMs: number;
  /** Time limit of a turn by its caller, without waits for decisions; `undefined` means no bound. */
  readonly turnMs: number | undefined;
  /** True if nothing is kept of the conversation: the session ends with its process. */
  readonly ephemeral: boolean;
  /** Maximum cost of a turn, USD; `undefined` means no bound. */
  readonly budgetUsd: number | undefined;
  /** Time limit of a turn by the operator, without waits for decisions; see `turnMs`. */
  readonly turnMaxMs: number;
  /** Maximum time without a sign of life from Claude Code in a turn, without waits for decisions. */
  readonly inactivityMs: number;
  /** Time from the end of a turn until its process is closed. */
  readonly idleProcessMs: number;
  /** Set on a server that goes on without clients; `undefined` elsewhere, without such bounds. */
  readonly unattended: UnattendedPolicy | undefined;
  /** Time from an interrupt until a process that does not obey is killed. */
  readonly stopGraceMs: number;
  /** Verification of each turn whose prompt brings none of its own; `undefined` means none. */
  readonly verify: Verify | undefined;
  /** True if each turn gets a receipt. */
  readonly receipts: boolean;
  /** Behavior at a limit; `undefined` means the operator's. */
  readonly onLimit: OnLimit | undefined;
  readonly priority: Priority;
  /** Profile that the session began with. */
  readonly profile: string | undefined;
  /** Limits on the use of the account and on money. */
  readonly use: UsePolicy;
}

/** Operator's limits on the use of accounts and on money, for one session. */
export interface UsePolicy {
  /** Default of `onLimit`. */
  readonly onLimit: OnLimit;
  /** Maximum time that a turn waits at limits, ms. */
  readonly waitMaxMs: number;
  /** Time after a reset until a turn goes on, ms; up to as much again is added at random, so that sessions come one by one. */
  readonly marginMs: number;
  /** Rest of the windows that is kept for people; `undefined` means none. */
  readonly reserve: PlanReserve | undefined;
  readonly budgets: readonly Budget[];
}

export const UNLIMITED_USE: UsePolicy = {
  onLimit: "report",
  waitMaxMs: 21_600_000,
  marginMs: 15_000,
  reserve: undefined,
  budgets: [],
};

/** Values from a session's own options. */
type Own = Pick<
  Policy,
  | "budgetUsd"
  | "cwd"
  | "ephemeral"
  | "initMs"
  | "onLimit"
  | "onLost"
  | "priority"
  | "profile"
  | "requestTimeoutMs"
  | "sessionApproves"
  | "turnMs"
  | "verify"
>;

/** Values from the session's row and its server, not from `Limits`. */
type OfSession = Pick<Policy, "begun" | "here" | "receipts" | "unattended" | "use">;

/** Bounds of the operator, without values from a session's own options (`Own`). */
export interface Limits extends Omit<Policy, keyof (Own & OfSession)> {
  readonly unattended: UnattendedTerms;
}

/** `usualInitMs`: default of `sessionInitTimeoutMs`. A supervision option that is not read here does not compile. */
export function policyOf(
  options: SupervisionOptions,
  limits: Limits,
  usualInitMs: number,
): Omit<Policy, keyof OfSession> {
  const {
    callerApproves: sessionApproves = "all",
    cwd,
    // `Placement` reads `labels` and `node`.
    labels: _labels,
    maxBudgetUsd: budgetUsd,
    node: _node,
    onLimit,
    onLost = "report",
    permissionRequestTimeoutMs: requestTimeoutMs,
    persistSession: isKept = true,
    priority = "normal",
    profile,
    sessionInitTimeoutMs: initMs = usualInitMs,
    timeout: turnMs,
    verify,
    ...unread
  } = options;
  // oxlint-disable-next-line typescript/no-generated-empty-object-type -- it is empty only while every option is read
  const own: Own & Readonly<Record<keyof typeof unread, never>> = {
    requestTimeoutMs,
    budgetUsd,
    cwd,
    ephemeral: !isKept,
    initMs,
    onLimit,
    onLost,
    priority,
    profile,
    sessionApproves,
    turnMs,
    verify: verify && verifyOf(verify),
  };
  return { ...limits, ...own, callerApproves: tighter(limits.callerApproves, sessionApproves) };
}
