import { z } from "zod";
import { Remembered } from "./approvals/remembered.ts";
import { AddedPolicy } from "./approvals/session-policy.ts";
import { Attendance, Reach } from "./attendance.ts";
import { SuspendRequest } from "./control.ts";
import { BackgroundTask, ClosedReason, TurnOrigin } from "./event.ts";
import type { SessionOptions } from "./options.ts";
import { AnsweredBy, OpenRequest, PermissionMode } from "./permission.ts";
import { Identity, Origin, SessionProcess } from "./process.ts";
import { TurnLimits } from "./prompt.ts";
import { FailureCategory, TurnOutcome } from "./turn.ts";

/** Reason for stopping a running turn. The first reason wins and decides the outcome. */
export const StopReason = z.enum([
  "interrupt",
  "timeout",
  "time_limit",
  "budget",
  "inactivity",
  "init_timeout",
  "unattended",
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
});

/** Environment record of a prompt's client, and additions of the client's policy to the session's. */
const Sender = z.object({ environmentId: z.string().exactOptional(), policy: AddedPolicy.exactOptional() });
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

/**
 * Present state of a session, at most 16 KiB: large content (prompts, inputs, texts) is named by the id of its event. Only
 * `engine/step.ts` writes the state; it is stored in the transaction of the events that led to it.
 */
export const SessionState = z.object({
  lastEventId: z.number().int(),
  closed: z
    .object({ reason: ClosedReason, by: z.string(), at: z.number(), message: z.string().exactOptional() })
    .exactOptional(),
  turn: Turn.nullable(),
  process: SessionProcess,
  processCount: z.number().int(),
  /** Recorded with the first prompt. */
  identity: Identity.exactOptional(),
  requests: z.array(OpenRequest),
  /** Last answered requests, so that a second answer can name the first; `commandId` if a command answered. */
  answered: z.array(
    z.object({
      requestId: z.string(),
      by: AnsweredBy,
      behavior: z.enum(["allow", "deny"]),
      commandId: z.string().exactOptional(),
      /** Event with the answer, kept while the asking process lives, which may ask another owner again. */
      eventId: z.number().int().exactOptional(),
    }),
  ),
  /** Answers that hold until the session ends, newest first. */
  remembered: z.array(Remembered).exactOptional(),
  queue: z.array(QueuedPrompt),
  /** Senders of waiting and running prompts and of the last turn, each once, by a short name. */
  senders: z.record(z.string(), Sender).exactOptional(),
  /** Sender of the last prompt that began a turn. Turns begun by Claude Code itself are under the sender's policy. */
  sender: z.string().exactOptional(),
  /** Environment record of the last process. Default: the server's own. */
  environmentId: z.string().exactOptional(),
  /** True if the process closes as soon as nothing runs, unless a prompt comes first. */
  suspending: z.boolean().exactOptional(),
  /** Reason why background tasks do not keep the process. */
  suspendReason: SuspendRequest.shape.reason,
  background: z.array(BackgroundTask),
  /** First prompt and latest ones, by idempotency key or id, so that a retry is harmless and another prompt is detected. */
  recentKeys: z.array(z.object({ key: z.string(), cursor: z.number().int(), digest: z.string().exactOptional() })),
  /** Last commands that must not be carried out twice. */
  recentCommands: z.array(z.object({ id: z.string(), cursor: z.number().int() })).exactOptional(),
  lastOutcome: TurnOutcome.nullable(),
  /** Number of turns begun. */
  turnCount: z.number().int().exactOptional(),
  /** Event `turn.receipt` of the last turn; absent if that turn ended at once. */
  lastReceiptEventId: z.number().int().exactOptional(),
  /** Last `turn.ended` event. */
  lastTurnEventId: z.number().int().nullable(),
  lastToolUseId: z.string().nullable(),
  totals: z.object({ turns: z.number(), costUsd: z.number() }),
  /** Last cumulative cost that Claude Code reported, USD. The difference to it is a turn's cost. */
  reportedCostUsd: z.number(),
  /** `reportedCostUsd` at the last orderly exit. After a kill, Claude Code counts on from here. */
  savedCostUsd: z.number(),
  /** Claude Code's own id of the session, if changed by `/clear`. */
  transcriptId: z.string().exactOptional(),
  /** `totals.turns` at the change of `transcriptId`. */
  turnsBefore: z.number().exactOptional(),
  /** Transcript that the session begins with: the original of a fork, or a session started outside this server. */
  origin: Origin.exactOptional(),
  /** Choices of callers since the start; override the options of the start. */
  chosen: z.object({ model: z.string().exactOptional(), permissionMode: PermissionMode.exactOptional() }),
  reported: z.object({
    model: z.string().exactOptional(),
    permissionMode: PermissionMode.or(z.string()).exactOptional(),
  }),
  /** True if the client of the last prompt cannot show forms. */
  noDialog: z.boolean().exactOptional(),
  /** True if the caller of the last prompt has no tool to answer with. */
  noCaller: z.boolean().exactOptional(),
  /** True if the client of the last prompt is unattended. */
  unattended: z.boolean().exactOptional(),
  /** True if the caller of the last prompt may decide beyond the operator's bound for callers. */
  decides: z.boolean().exactOptional(),
  /** True if the last prompt was given at the console. */
  atConsole: z.boolean().exactOptional(),
  /** Set if the session's server goes on without clients. */
  attendance: Attendance.exactOptional(),
  reach: Reach.exactOptional(),
  /** Last cumulative cost told by Claude Code, also between results, USD. Default: `reportedCostUsd`. */
  toldCostUsd: z.number().exactOptional(),
  /** Time at which the last work ended, ms since the epoch. The session idle for longest makes room first. */
  idleSince: z.number(),
  /** Time without work, ms of time awake, which the idle close counts. */
  idleMs: z.number(),
});
export type SessionState = z.infer<typeof SessionState>;

export const SessionStatus = z.enum(["running", "waiting_permission", "idle", "error", "cancelled", "closed"]);
export type SessionStatus = z.infer<typeof SessionStatus>;

/** Derives the status on the wire. Pure, never stored. */
export function statusOf(state: SessionState): SessionStatus {
  if (state.closed) return state.closed.reason === "cancelled" ? "cancelled" : "closed";
  if (state.turn) return state.requests.length > 0 ? "waiting_permission" : "running";
  return state.lastOutcome === "failed" || state.lastOutcome === "lost" ? "error" : "idle";
}

export function optionsOf(spec: SessionOptions, { chosen }: SessionState): SessionOptions {
  return { ...spec, ...chosen };
}

/** Returns the prompts of the running turn: `turn.prompt`, then those that joined. */
export function promptsOf({ turn }: SessionState): QueuedPrompt[] {
  return [...(turn?.prompt ? [turn.prompt] : []), ...(turn?.steered ?? [])];
}

/** True if Claude was asked anything that the present transcript must hold. */
export function hasSpoken({ totals, turnsBefore = 0 }: SessionState): boolean {
  return totals.turns > turnsBefore;
}

/** Returns the last prompt of the running turn with a verification of its own. */
export function verifiedPrompt(state: SessionState): QueuedPrompt | undefined {
  return promptsOf(state).findLast(({ verify }) => verify);
}

/** True if the owner's death would leave a turn or a process unfinished. */
export function isAtWork({ process, turn }: SessionState): boolean {
  return turn !== null || process.phase !== "none";
}

export function initialState(at: number): SessionState {
  return {
    lastEventId: 0,
    turn: null,
    process: { phase: "none" },
    processCount: 0,
    requests: [],
    answered: [],
    queue: [],
    background: [],
    recentKeys: [],
    lastOutcome: null,
    lastTurnEventId: null,
    lastToolUseId: null,
    totals: { turns: 0, costUsd: 0 },
    reportedCostUsd: 0,
    savedCostUsd: 0,
    chosen: {},
    reported: {},
    idleSince: at,
    idleMs: 0,
  };
}
