import type { Command, CommandReply } from "../../domain/command.ts";
import type { ControlRequest } from "../../domain/control.ts";
import type { ErrorCode, Refusal } from "../../domain/error.ts";
import type { SessionEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { Decision } from "../../domain/permission.ts";
import type { Reach } from "../../domain/attendance.ts";
import type { SessionState } from "../../domain/session.ts";
import type { Policy } from "../policy/policy.ts";
import type { AgentSignal, Judgement } from "../ports.ts";

/** All that can happen to a session. */
export type Happening =
  /** Of an answer with another input: `judgement` is what that would be, and `isMasked` says that the log does not hold it whole. */
  | { type: "command"; command: Command; judgement?: Judgement; isMasked?: boolean }
  /** `line`: up to there every line of the process is dealt with, by this signal and those before it. */
  | { type: "signal"; processId: string; signal: AgentSignal; line?: number }
  /** What came of a control command that the process was given. */
  | { type: "controlled"; commandId: string; by: string; request: ControlRequest; outcome: ControlOutcome }
  | { type: "tick" }
  /** A client waits on, reads or follows the session. */
  | { type: "attended" }
  /** Clients came or went. */
  | { type: "reach"; reach: Reach }
  /**
   * This node has taken the session over from one that died. `why` is a sentence on what became of its process, if that is known;
   * `mayStart`: it may run the prompts that wait for a process, with the environment record `environmentId`.
   */
  | { type: "recovered"; why?: string; mayStart?: boolean; environmentId?: string }
  /** The same, and its shim is there, whose process this node can go on with. */
  | { type: "attached" }
  | { type: "shutdown" };

/**
 * `at` is ms since the epoch, which is written down for people and decides nothing: clocks are set. `elapsedMs` is the time
 * awake since the input before, as the owner has measured it; 0 with an owner's first, as a time without one does not count.
 */
export type Input = Happening & { at: number; elapsedMs: number };

export type ControlOutcome = { ok: true; data: JsonObject } | { ok: false; refusal: Refusal };

/** What the actor does once state and events are stored. */
export type Effect =
  /** `environmentId` is the record of the client whose prompt it is started for; undefined is that of the server itself. */
  | { type: "start"; processId: string; first: boolean; rerun: boolean; resumeAt?: string; environmentId?: string }
  /** Go on with the process of a dead owner. */
  | { type: "reattach"; processId: string }
  /** End what a dead owner left running; what follows waits until it is gone. */
  | { type: "end-leftover"; processId: string; pid?: number; startedAt?: string }
  /** The text of the prompt stands in the event. `partlyDone` is one that ran before, which Claude Code knows nothing of. */
  | { type: "push"; promptId: string; eventId: number; partlyDone?: true }
  | { type: "control"; commandId: string; by: string; request: ControlRequest }
  | { type: "answer"; requestId: string; decision: Decision }
  /** The process has asked again what was answered: the answer stands in the event. */
  | { type: "answer-again"; requestId: string; eventId: number }
  | { type: "interrupt" }
  /** Subagents that Claude Code has left at work. */
  | { type: "stop-tasks"; taskIds: readonly string[] }
  | { type: "stop" }
  | { type: "kill" }
  | { type: "reply"; commandId: string; reply: CommandReply };

/** One step in the making: the functions of this folder change `state` and add to `events` and `effects`. */
export interface Draft {
  readonly state: SessionState;
  readonly events: SessionEvent[];
  readonly effects: Effect[];
  readonly at: number;
  /** Of the session alone, whichever client has sent what runs. */
  readonly base: Policy;
  /** Of the turn that runs, or else of the last one. */
  readonly policy: Policy;
}

/** Adds an event and returns the id it will have in the log. */
export function emit(draft: Draft, event: SessionEvent): number {
  draft.events.push(event);
  draft.state.lastEventId += 1;
  return draft.state.lastEventId;
}

/** A notice about a session that no client attends to. */
export function noteUnattended(draft: Draft, message: string): void {
  emit(draft, { type: "notice", data: { kind: "unattended", message } });
}

export function accept(draft: Draft, command: Pick<Command, "id">, cursor: number, data?: JsonObject): void {
  const reply = { ok: true as const, cursor, ...(data && { data }) };
  draft.effects.push({ type: "reply", commandId: command.id, reply });
}

export function refuse(draft: Draft, command: Pick<Command, "id">, code: ErrorCode, message: string): void {
  draft.effects.push({ type: "reply", commandId: command.id, reply: { ok: false, refusal: { code, message } } });
}
