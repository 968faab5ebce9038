import { type Bound, tighter } from "../../domain/approvals/risk.ts";
import type { ApproverName } from "../../domain/approvals/answer-source.ts";
import type { SupervisionOptions } from "../../domain/options/traits.ts";
import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import type { Rules } from "./rules.ts";

/** What a client says of its sessions while no client attends to them. */
interface UnattendedTerms {
  /** A request that can be shown to no one waits, or is denied at once. */
  readonly requests: "wait" | "deny";
  /** What turns may cost then, USD. */
  readonly maxUsd: number;
}

/** What the server says of them. */
export interface WhileUnattended {
  /** A session that no client has waited on, read or followed for this time is unattended, ms. */
  readonly afterMs: number;
  /** How long turns may run then, time spent waiting for a decision not counted, ms. */
  readonly maxMs: number;
}

/** What holds of sessions that no client attends to. */
type UnattendedPolicy = UnattendedTerms & WhileUnattended;

/** The bounds that one session lives under: the operator's, narrowed by the session's own options. All in ms. */
export interface Policy {
  /** What the session began under, which is stored with it. */
  readonly begun: SessionPolicy;
  /** The same, with what its owner adds. The client that sends a prompt may add more: policy/of-turn.ts. */
  readonly here: SessionPolicy;
  /** The operator's; a session's own are Claude Code's to heed. */
  readonly rules: Rules;
  /** The most that a caller may approve in the session. */
  readonly callerApproves: Bound;
  /** The most by the session's own options, which bounds those as well whom the operator's bound does not. */
  readonly sessionApproves: Bound;
  /** The session's folder, which paths of rules count from. */
  readonly cwd: string;
  /** What becomes of a turn that is lost: told, or gone on with by Claude Code's own means. */
  readonly onLost: "report" | "resume";
  /** The approvers in their order. Empty: every request is denied. */
  readonly approvalChain: readonly ApproverName[];
  /** How long a request is with each of them but the caller, counted from when it was first shown to them, or else from when they got it. */
  readonly approverTimeoutMs: Readonly<Record<ApproverName, number>>;
  /** Time limit of the caller as approver, from when it gets the request, if the caller chose one. */
  readonly requestTimeoutMs: number | undefined;
  /** Its default, counted from the first delivery to the caller. */
  readonly requestDeliveredMs: number;
  /** Its maximum, however late the caller has seen the request. */
  readonly requestMaxMs: number;
  /** How long a request stays open that was shown to no approver. */
  readonly requestUnseenMs: number;
  /** From spawn to Claude Code's answer to initialize. */
  readonly initMs: number;
  /** A turn's length as its caller wants it, time spent waiting for a decision not counted; undefined is no bound. */
  readonly turnMs: number | undefined;
  /** Nothing is kept of the conversation: the session ends with its process. */
  readonly ephemeral: boolean;
  /** What a turn may cost, USD; undefined is no bound. */
  readonly budgetUsd: number | undefined;
  /** A turn's length, time spent waiting for a decision not counted. */
  readonly turnMaxMs: number;
  /** No sign of life from Claude Code in a turn, time spent waiting for a decision not counted. */
  readonly inactivityMs: number;
  /** From the end of a turn until its process is closed. */
  readonly idleProcessMs: number;
  /** Of a server that goes on without clients; undefined for others, whose requests and turns know no such bounds. */
  readonly unattended: UnattendedPolicy | undefined;
  /** From an interrupt until the process that did not obey is killed. */
  readonly stopGraceMs: number;
}

/** What a session's own options say. */
type Own = Pick<
  Policy,
  "requestTimeoutMs" | "budgetUsd" | "cwd" | "ephemeral" | "initMs" | "onLost" | "sessionApproves" | "turnMs"
>;

/** What is not told by limits, but by the session's row and its server. */
type OfSession = Pick<Policy, "begun" | "here" | "unattended">;

/** The operator's bounds, without what a session's own options say. */
export interface Limits extends Omit<Policy, keyof (Own & OfSession)> {
  readonly unattended: UnattendedTerms;
}

/** `usualInitMs` is the default of sessionInitTimeoutMs. An option of supervision that is not read here does not compile. */
export function policyOf(
  options: SupervisionOptions,
  limits: Limits,
  usualInitMs: number,
): Omit<Policy, keyof OfSession> {
  const {
    callerApproves: sessionApproves = "all",
    cwd,
    maxBudgetUsd: budgetUsd,
    onLost = "report",
    permissionRequestTimeoutMs: requestTimeoutMs,
    persistSession: isKept = true,
    sessionInitTimeoutMs: initMs = usualInitMs,
    timeout: turnMs,
    ...unread
  } = options;
  // oxlint-disable-next-line typescript/no-generated-empty-object-type -- it is empty only while every option is read
  const own: Own & Readonly<Record<keyof typeof unread, never>> = {
    requestTimeoutMs,
    budgetUsd,
    cwd,
    ephemeral: !isKept,
    initMs,
    onLost,
    sessionApproves,
    turnMs,
  };
  return { ...limits, ...own, callerApproves: tighter(limits.callerApproves, sessionApproves) };
}
