import type { Bound } from "../domain/approvals/risk.ts";
import type { Rules } from "./rules/judge.ts";

/** The bounds that one session lives under: the operator's, narrowed by the session's own options. All in ms. */
export interface Policy {
  /** The operator's; a session's own are Claude Code's to heed. */
  readonly rules: Rules;
  /** The most that a caller may approve in the session. */
  readonly callerApproves: Bound;
  /** The session's folder, which paths of rules count from. */
  readonly cwd: string;
  /** What becomes of a turn that is lost: told, or gone on with by Claude Code's own means. */
  readonly onLost: "report" | "resume";
  /** Counts from the creation of an ask when the caller chose it, else undefined. */
  readonly askMs: number | undefined;
  /** Counts from the first delivery of an ask to someone who can answer. */
  readonly askDeliveredMs: number;
  /** How long an ask stays open, however late it was seen. */
  readonly askMaxMs: number;
  /** How long an ask that nobody has seen stays open. */
  readonly askUnseenMs: number;
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
  /** From an interrupt until the process that did not obey is killed. */
  readonly stopGraceMs: number;
}
