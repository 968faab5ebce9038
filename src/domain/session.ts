import { z } from "zod";
import { Remembered } from "./approvals/remembered.ts";
import { AddedPolicy } from "./approvals/session-policy.ts";
import { Attendance, Reach } from "./attendance.ts";
import { SuspendRequest } from "./control.ts";
import { BackgroundTask, ClosedReason } from "./event.ts";
import type { SessionOptions } from "./options.ts";
import { AnsweredBy, OpenRequest, PermissionMode } from "./permission.ts";
import { TurnLimits } from "./prompt.ts";
import { FailureCategory, TurnOutcome } from "./turn.ts";

/** Why a running turn is being stopped. The first reason wins and decides the outcome. */
export const StopReason = z.enum([
  "interrupt",
  "timeout",
  "time_limit",
  "budget",
  "inactivity",
  "init_timeout",
  "unattended",
  /** Claude Code has ended the turn itself, and left subagents at work. */
  "subagents",
]);
export type StopReason = z.infer<typeof StopReason>;

/** `forMs` is how long ago that began; the owner counts it. */
const Stopping = z.object({
  reason: StopReason,
  by: z.string(),
  at: z.number(),
  forMs: z.number(),
  killed: z.boolean(),
});

/** What the owner counts of a turn, in ms of time awake: a clock that is set, sleep and a time without an owner count nothing. */
export const TurnClock = z.object({
  /** Since its start. */
  lastedMs: z.number(),
  /** The same without the time in which a request was open or the process waited for a slot: limits are measured by it. */
  ranMs: z.number(),
  /** Of that, since the last sign of life. */
  silentMs: z.number(),
});
export type TurnClock = z.infer<typeof TurnClock>;

/** What the results of Claude Code in a turn add up to so far; the texts stay in the log. */
const Outcome = z.object({
  outcome: TurnOutcome,
  errorSubtype: z.string().exactOptional(),
  category: FailureCategory.exactOptional(),
  message: z.string().exactOptional(),
});

/** Of a prompt: the environment record of its client, and what the client's policy adds to that of the session. */
const Sender = z.object({ environmentId: z.string().exactOptional(), policy: AddedPolicy.exactOptional() });
export type Sender = z.infer<typeof Sender>;

/** A prompt that waits or runs; its text is in the event. */
export const QueuedPrompt = z.object({
  promptId: z.string(),
  eventId: z.number().int(),
  limits: TurnLimits.exactOptional(),
  resumeAt: z.string().exactOptional(),
  /** By which of the `senders`. */
  sender: z.string().exactOptional(),
  /** After an interrupt, a shutdown or a loss nothing that waited runs unasked. */
  held: z.boolean().exactOptional(),
});
export type QueuedPrompt = z.infer<typeof QueuedPrompt>;

/** One prompt to its end: from the push until Claude Code is idle, background subagents included. */
export const Turn = z.object({
  id: z.string(),
  origin: z.enum(["prompt", "self"]),
  /** For people, ms since the epoch; what is decided by time is in `clock`. */
  startedAt: z.number(),
  clock: TurnClock,
  /** Prompts of this turn that Claude Code has not finished with: the turn cannot end before. */
  awaiting: z.array(z.string()),
  /** The prompt of a turn of origin `prompt`; its text is in the event. */
  prompt: QueuedPrompt.exactOptional(),
  /** Prompts that joined the turn. */
  steered: z.array(QueuedPrompt).exactOptional(),
  /** The prompt waits for an ending process to be gone before the next one is started for it. */
  pending: z.boolean(),
  /** The turn goes on with one that was lost (onLost: resume). It happens once. */
  rerun: z.boolean(),
  /** Of a rerun: its process was given the prompt once more. */
  given: z.boolean().exactOptional(),
  /** Of a rerun: Claude Code has not begun with it yet. */
  unheard: z.boolean().exactOptional(),
  stopping: Stopping.exactOptional(),
  last: Outcome.exactOptional(),
  /** Claude has answered without a text so far; false once there was one. */
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
 * The shim that holds the pipes of a process. `address` is its socket; pid and start time identify it, as those of any process.
 * Only a daemon of the same name, with the same version of the Agent SDK, attaches to it; without one it ends its processes after
 * `keepMs`.
 */
const Shim = z.object({
  address: z.string(),
  pid: z.number(),
  startedAt: z.string(),
  daemon: z.string(),
  sdk: z.string(),
  keepMs: z.number(),
});
export type ShimRef = z.infer<typeof Shim>;

/** `startedAt` is the start time of the pid in the system's own unit: together they identify a process. */
const Running = z.object({
  phase: z.enum(["starting", "live", "ending"]),
  id: z.string(),
  since: z.number(),
  /** Of a starting one: how long it has been so, ms of time awake. */
  startingMs: z.number().exactOptional(),
  /** Of a starting one: it waits for a slot, and does not run yet. */
  waiting: z.boolean().exactOptional(),
  /** Of one that waits: what Claude Code needs is installed first, and until then no slot is asked for. */
  installing: z.boolean().exactOptional(),
  /**
   * Of a starting one: the number of starts before it that came to nothing, because their owner died before the process was recorded.
   */
  again: z.number().int().exactOptional(),
  pid: z.number().exactOptional(),
  startedAt: z.string().exactOptional(),
  /** Without: its pipes are its server's, and it ends with that. */
  shim: Shim.exactOptional(),
  /** The highest number up to which every line of Claude Code is dealt with. */
  line: z.number().int().exactOptional(),
  /** What was added to the policy that the session began under, where it was started. */
  policy: AddedPolicy.exactOptional(),
});

/** Starting until it has answered its initialize; ending once it was asked to end, when its exit is expected. */
const Process = z.discriminatedUnion("phase", [z.object({ phase: z.literal("none") }), Running]);

/** Whose Claude Code configuration a session uses and how it is paid; resuming it under others is refused. */
export const Identity = z.object({ configFolder: z.string(), paidBy: z.string() });
export type Identity = z.infer<typeof Identity>;

/** `at` is the last message of it that belongs to this session, if not all do; of a new one nothing was said yet. */
const Origin = z.object({
  transcriptId: z.string(),
  at: z.string().exactOptional(),
  isNew: z.boolean().exactOptional(),
});
export type Origin = z.infer<typeof Origin>;

/**
 * All that is true of a session now, at most 16 KiB: whatever can be large (prompts, inputs, texts) is named by the id
 * of the event that holds it. Written only by engine/step.ts, stored in the transaction of the events that led to it.
 */
export const SessionState = z.object({
  lastEventId: z.number().int(),
  closed: z
    .object({ reason: ClosedReason, by: z.string(), at: z.number(), message: z.string().exactOptional() })
    .exactOptional(),
  turn: Turn.nullable(),
  process: Process,
  processCount: z.number().int(),
  /** Recorded with the first prompt. */
  identity: Identity.exactOptional(),
  requests: z.array(OpenRequest),
  /** The last requests that were answered, so that a second answer can name the first; and by which command, if any. */
  answered: z.array(
    z.object({
      requestId: z.string(),
      by: AnsweredBy,
      behavior: z.enum(["allow", "deny"]),
      commandId: z.string().exactOptional(),
      /** The event that holds the answer, as long as the process that has asked is there: it may ask another owner again. */
      eventId: z.number().int().exactOptional(),
    }),
  ),
  /** What answers are to hold until the session ends, the newest first. */
  remembered: z.array(Remembered).exactOptional(),
  queue: z.array(QueuedPrompt),
  /** Those whose prompts wait or run, and the one of the last turn; each once, by a short name. */
  senders: z.record(z.string(), Sender).exactOptional(),
  /** Of the last prompt that has begun a turn: the turns that Claude Code begins by itself are under the same policy. */
  sender: z.string().exactOptional(),
  /** The environment record of the last process; of none, and without, that of the server itself. */
  environmentId: z.string().exactOptional(),
  /** The process is closed as soon as nothing runs, unless another prompt comes first. */
  suspending: z.boolean().exactOptional(),
  /** Why background tasks do not keep the process. */
  suspendReason: SuspendRequest.shape.reason,
  background: z.array(BackgroundTask),
  /** The first prompt and the last ones by idempotency key or else by id: a retry is harmless, and no other prompt is taken for it. */
  recentKeys: z.array(z.object({ key: z.string(), cursor: z.number().int(), digest: z.string().exactOptional() })),
  /** The last commands that must not be carried out twice. */
  recentCommands: z.array(z.object({ id: z.string(), cursor: z.number().int() })).exactOptional(),
  lastOutcome: TurnOutcome.nullable(),
  /** The turn.ended event of the last turn. */
  lastTurnEventId: z.number().int().nullable(),
  lastToolUseId: z.string().nullable(),
  totals: z.object({ turns: z.number(), costUsd: z.number() }),
  /** The last cumulative cost that Claude Code reported: a turn's cost is the difference to it. */
  reportedCostUsd: z.number(),
  /** The same, at the last exit in good order: what a killed Claude Code had not saved it counts again. */
  savedCostUsd: z.number(),
  /** Claude Code's own id of the session, where `/clear` has changed it. */
  transcriptId: z.string().exactOptional(),
  /** `totals.turns` at that time. */
  turnsBefore: z.number().exactOptional(),
  /** Of another session of Claude Code that this one begins with: a fork, or one that was never ours. */
  origin: Origin.exactOptional(),
  /** What callers have chosen since the start; it goes before the options of the start. */
  chosen: z.object({ model: z.string().exactOptional(), permissionMode: PermissionMode.exactOptional() }),
  reported: z.object({
    model: z.string().exactOptional(),
    permissionMode: PermissionMode.or(z.string()).exactOptional(),
  }),
  /** The client of the last prompt can show no form. */
  noDialog: z.boolean().exactOptional(),
  /** The caller of the last prompt has no tool to answer with. */
  noCaller: z.boolean().exactOptional(),
  /** The client of the last prompt is unattended. */
  unattended: z.boolean().exactOptional(),
  /** The caller of the last prompt may decide what is more than the operator's bound for callers. */
  decides: z.boolean().exactOptional(),
  /** The last prompt was given at the console. */
  atConsole: z.boolean().exactOptional(),
  /** Of a session whose server goes on without clients. */
  attendance: Attendance.exactOptional(),
  reach: Reach.exactOptional(),
  /** What Claude Code has told last that it has spent, also between results. Without: `reportedCostUsd`. */
  toldCostUsd: z.number().exactOptional(),
  /** Since when nothing runs, ms since the epoch: who has rested longest makes room first. */
  idleSince: z.number(),
  /** For how long, ms of time awake: what the idle close counts. */
  idleMs: z.number(),
});
export type SessionState = z.infer<typeof SessionState>;

export const SessionStatus = z.enum(["running", "waiting_permission", "idle", "error", "cancelled", "closed"]);
export type SessionStatus = z.infer<typeof SessionStatus>;

/** The word on the wire: a pure function of the state, never stored. */
export function statusOf(state: SessionState): SessionStatus {
  if (state.closed) return state.closed.reason === "cancelled" ? "cancelled" : "closed";
  if (state.turn) return state.requests.length > 0 ? "waiting_permission" : "running";
  return state.lastOutcome === "failed" || state.lastOutcome === "lost" ? "error" : "idle";
}

/** The options that the next process is started with. */
export function optionsOf(spec: SessionOptions, { chosen }: SessionState): SessionOptions {
  return { ...spec, ...chosen };
}

/** The prompts of the running turn: the one that began it, and those that joined it. */
export function promptsOf({ turn }: SessionState): QueuedPrompt[] {
  return [...(turn?.prompt ? [turn.prompt] : []), ...(turn?.steered ?? [])];
}

/** Tells whether Claude was asked anything that the present transcript must hold. */
export function hasSpoken({ totals, turnsBefore = 0 }: SessionState): boolean {
  return totals.turns > turnsBefore;
}

/** Whether anything runs in the session that its owner's death would leave unfinished. */
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
