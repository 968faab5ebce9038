import { z } from "zod";
import { Remembered } from "./approvals/remembered.ts";
import { Attendance, Reach } from "./attendance.ts";
import { SuspendRequest } from "./control.ts";
import { BackgroundTask, ClosedReason } from "./event.ts";
import type { SessionOptions } from "./options.ts";
import { AnsweredBy, OpenRequest, PermissionMode } from "./permission.ts";
import { PlanLimit } from "./plan.ts";
import { Identity, Origin, SessionProcess } from "./process.ts";
import { QueuedPrompt, Sender, Turn } from "./running-turn.ts";
import { TurnOutcome } from "./turn.ts";
import { Waiting, type WaitingKind } from "./waiting.ts";

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
  /** Reason why the turn, or without a turn the queue, stands still. */
  waiting: Waiting.exactOptional(),
  /** Refused request of the last turn, which `continue` can send again; `prompt` began that turn. */
  refused: PlanLimit.extend({ prompt: QueuedPrompt.exactOptional() }).exactOptional(),
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
  /** Part of `totals.costUsd` already counted in budgets, USD. */
  chargedUsd: z.number().exactOptional(),
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

/** Wait of a session, as readers see it. `until`: time at which the server looks again, ms since the epoch. */
export interface SessionWait extends Pick<Waiting, "until" | "window"> {
  readonly kind: WaitingKind;
}

/**
 * Derives the reason why the work of a session stands still: at a limit, or because its process waits for a slot. No server looks
 * at a session without a turn, so its wait ends for readers with the time itself.
 */
export function waitingOf({ closed, process, turn, waiting }: SessionState, now = Date.now()): SessionWait | undefined {
  if (closed) return undefined;
  if (waiting && (turn || (waiting.until ?? now) >= now)) {
    const { kind, until, window } = waiting;
    return { kind, ...(window !== undefined && { window }), ...(until !== undefined && { until }) };
  }
  const waits = process.phase === "starting" && process.waiting === true && process.installing !== true;
  return waits ? { kind: "slot" } : undefined;
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

/** True if only another node can go on with the session, so that this one need not own it. */
export function waitsForNode({ process, waiting }: SessionState): boolean {
  // A search for an environment goes before the start at a node that has the place.
  return waiting?.kind === "workspace" && waiting.isSearching !== true && process.phase === "none";
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
