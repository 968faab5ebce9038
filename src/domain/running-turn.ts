import { z } from "zod";
import { AddedPolicy } from "./approvals/session-policy.ts";
import { Reservation } from "./budget.ts";
import { TurnOrigin } from "./event.ts";
import { PlanLimit } from "./plan.ts";
import { TurnLimits } from "./prompt.ts";
import { FailureCategory, TurnOutcome } from "./turn.ts";

/** Running turn of a session, as part of its state. Only `engine/step.ts` writes it. */

/** Reason for stopping a running turn. The first reason wins and decides the outcome. */
export const StopReason = z.enum([
  "interrupt",
  "timeout",
  "time_limit",
  "budget",
  "inactivity",
  "init_timeout",
  "unattended",
  /** The rest of the weekly window is the operator's reserve. */
  "plan_reserve",
  /** Requests are paid beyond the plan, which the operator's reserve does not allow. */
  "overage",
  /** Claude Code has ended the turn itself but left subagents at work. */
  "subagents",
]);
export type StopReason = z.infer<typeof StopReason>;

/** Stop of a turn. `forMs` is the time since the stop began, ms, counted by the owner. */
const TurnStop = z.object({
  reason: StopReason,
  by: z.string(),
  at: z.number(),
  forMs: z.number(),
  killed: z.boolean(),
});

/** Times of a turn, ms of time awake, counted by the owner: clock changes, sleep and time without an owner do not count. */
export const TurnClock = z.object({
  /** Time since the start of the turn. */
  lastedMs: z.number(),
  /** `lastedMs` without the time in which a request was open or the process waited for a slot. Limits apply to this time. */
  ranMs: z.number(),
  /** Part of `ranMs` since the last sign of life. */
  silentMs: z.number(),
});
export type TurnClock = z.infer<typeof TurnClock>;

/** Sum of Claude Code's results in a turn so far; their texts stay in the log. */
const Outcome = z.object({
  outcome: TurnOutcome,
  errorSubtype: z.string().exactOptional(),
  category: FailureCategory.exactOptional(),
  message: z.string().exactOptional(),
  limit: PlanLimit.exactOptional(),
});

/** Environment record of a prompt's client, and additions of the client's policy to the session's. */
export const Sender = z.object({ environmentId: z.string().exactOptional(), policy: AddedPolicy.exactOptional() });
export type Sender = z.infer<typeof Sender>;

/** Waiting or running prompt; event `eventId` holds its text. */
export const QueuedPrompt = z.object({
  promptId: z.string(),
  eventId: z.number().int(),
  limits: TurnLimits.exactOptional(),
  resumeAt: z.string().exactOptional(),
  /** Key of the sender in `senders`. */
  sender: z.string().exactOptional(),
  /** True if the event has a verification of the prompt's own. */
  verify: z.boolean().exactOptional(),
  /** True for a prompt that waited during an interrupt, a shutdown or a loss: runs only on request. */
  held: z.boolean().exactOptional(),
});
export type QueuedPrompt = z.infer<typeof QueuedPrompt>;

/**
 * End of a turn whose work is over. `judge`: the server assesses the commands of the verification; `ask`: an approver decides
 * on the commands; `verify`: the commands run; `look`: the server compares the folders for the receipt.
 */
const Settling = z.object({
  phase: z.enum(["judge", "ask", "verify", "look"]),
  /** Number of the phase within the turn, so that a result of an earlier phase is dropped. */
  number: z.number().int(),
  /** Time in the phase, ms of time awake. */
  forMs: z.number(),
  ending: Outcome.extend({ code: z.string().exactOptional() }),
});

/** Verification of a turn so far. Event `eventId` holds the last result. */
const TurnVerification = z.object({
  /** Number of complete runs, and the most that there can be. */
  runs: z.number().int(),
  of: z.number().int(),
  /** Request to approvers for the commands. */
  requestId: z.string().exactOptional(),
  /** Event of the prompt whose commands an approver has allowed, for the whole turn; 0 for the session's commands. */
  allowed: z.number().int().exactOptional(),
  eventId: z.number().int().exactOptional(),
});

/** Work on one prompt, from the push until Claude Code is idle, background subagents included. */
export const Turn = z.object({
  id: z.string(),
  /** Number in the session, from 1. */
  number: z.number().int().exactOptional(),
  origin: TurnOrigin,
  /** Event `turn.started`. */
  eventId: z.number().int().exactOptional(),
  /** Event with the state of the folders before the turn: `turn.baseline`, or the last `turn.receipt`. */
  baselineEventId: z.number().int().exactOptional(),
  receiptEventId: z.number().int().exactOptional(),
  verification: TurnVerification.exactOptional(),
  /** Number of phases of `settling` begun so far. */
  phases: z.number().int().exactOptional(),
  settling: Settling.exactOptional(),
  /** Start for display, ms since the epoch; decisions by time use `clock`. */
  startedAt: z.number(),
  clock: TurnClock,
  /** Prompts of this turn that Claude Code has not finished; the turn cannot end earlier. */
  awaiting: z.array(z.string()),
  /** Prompt that began a turn of origin `prompt`. */
  prompt: QueuedPrompt.exactOptional(),
  steered: z.array(QueuedPrompt).exactOptional(),
  /** True while an ending process must exit before the next one is started for the prompt. */
  pending: z.boolean(),
  /** True if the turn resumes a lost turn (`onLost: resume`), which happens once. */
  rerun: z.boolean(),
  /** Set in a rerun whose process was given the prompt again. */
  given: z.boolean().exactOptional(),
  /** Set in a rerun that Claude Code has not begun yet. */
  unheard: z.boolean().exactOptional(),
  stopping: TurnStop.exactOptional(),
  last: Outcome.exactOptional(),
  /** True until the prompt of the turn may be given to Claude Code: a limit holds the turn back. */
  isHeldBack: z.boolean().exactOptional(),
  /** Message that has sent the refused request again, which happens at most once for each refusal. */
  goneOn: z.string().exactOptional(),
  /** Refusals at a limit one after the other, without a good answer in between. `since`: time of the first. */
  refusals: z.object({ count: z.number().int(), since: z.number() }).exactOptional(),
  /** Amounts reserved in budgets. */
  reserved: z.array(Reservation).exactOptional(),
  hasUnknownPrice: z.boolean().exactOptional(),
  /** True if Claude has answered without a text so far, false after a text. */
  isEmpty: z.boolean().exactOptional(),
  warnings: z.array(z.string()).exactOptional(),
  resultEventId: z.number().int().exactOptional(),
  lastToolUseId: z.string().exactOptional(),
  durationApiMs: z.number(),
  numTurns: z.number(),
  costUsd: z.number(),
});
export type Turn = z.infer<typeof Turn>;
