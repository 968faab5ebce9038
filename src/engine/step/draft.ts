import type { Command, CommandReply } from "../../domain/command.ts";
import type { ControlRequest } from "../../domain/control.ts";
import type { ErrorCode, Refusal } from "../../domain/error.ts";
import type { SessionEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { Decision, PermissionMode } from "../../domain/permission.ts";
import type { Reach } from "../../domain/attendance.ts";
import type { ProcessIdentity } from "../../domain/process.ts";
import type { Receipt, Snapshot } from "../../domain/receipt.ts";
import type { SessionState } from "../../domain/session.ts";
import type { Policy } from "../policy/policy.ts";
import type { LedgerDraft } from "./ledger-draft.ts";
import type { AgentSignal, CheckOutcome, JudgedCommand, Judgement } from "../ports.ts";

/** Everything that can happen to a session. */
export type Happening =
  /** For changed input of an answer: `judgement` assesses the input; `isMasked` if the log masks secrets in it. */
  | { type: "command"; command: Command; judgement?: Judgement; isMasked?: boolean }
  /** `line`: last line of the process covered by the signals so far. */
  | { type: "signal"; processId: string; signal: AgentSignal; line?: number }
  /** Outcome of a control request that the process was given. */
  | { type: "controlled"; commandId: string; by: string; request: ControlRequest; outcome: ControlOutcome }
  /** State of the folders before a turn. `between`: files changed since the last receipt. */
  | { type: "baseline"; turnId: string; before: Snapshot; between?: number }
  /** Commands of the verification, assessed; or the reason, in sentences, why none may run. */
  | ({ type: "judged"; turnId: string; number: number } & JudgedVerification)
  | { type: "verified"; turnId: string; number: number; outcome: CheckOutcome }
  /** `seen` is absent if the log of the turn could not be read. */
  | { type: "looked"; turnId: string; number: number; seen?: { receipt: Receipt; after: Snapshot } }
  /**
   * Environment record for the process of a turn that goes on after a wait; absent if no client has one at present. `refusal`: a
   * sentence on why the session may not go on here by now.
   */
  | { type: "environment"; turnId: string; environmentId?: string; refusal?: string }
  | { type: "tick" }
  /** A client waits on, reads or follows the session. */
  | { type: "attended" }
  /** Clients came or went. */
  | { type: "reach"; reach: Reach }
  /**
   * This node has taken the session over from a dead owner. `why`: a sentence on the fate of the process, if known. `mayStart`:
   * prompts that wait for a process may run here, with the environment record `environmentId`.
   */
  | { type: "recovered"; why?: string; mayStart?: boolean; environmentId?: string }
  /** Taken over as in `recovered`, but the shim is alive, so this node can go on with its process. */
  | { type: "attached" }
  | { type: "shutdown" };

/**
 * Time of an input. `at`: ms since the epoch, only for people, because clocks can be set. `elapsedMs`: time awake since the
 * previous input, as measured by the owner; 0 for the first input of an owner, because time without an owner does not count.
 */
export type Input = Happening & { at: number; elapsedMs: number };

/** Assessment of the commands of a verification. `of`: maximum number of runs. */
export type JudgedVerification =
  | { readonly refused: string }
  | {
      readonly commands: readonly { readonly command: string; readonly judged: JudgedCommand }[];
      readonly of: number;
      readonly own: Pick<SessionOptions, "allowedTools" | "disallowedTools">;
      readonly mode: PermissionMode;
    };

export type ControlOutcome = { ok: true; data: JsonObject } | { ok: false; refusal: Refusal };

/** Actions of the actor after `state` and `events` are stored. */
export type Effect =
  /** `environmentId`: record of the client whose prompt needs the process; `undefined` for the server's own environment. */
  | {
      type: "start";
      processId: string;
      first: boolean;
      rerun: boolean;
      sendsAgain?: true;
      resumeAt?: string;
      environmentId?: string;
    }
  /** Go on with the process of a dead owner. */
  | { type: "reattach"; processId: string }
  /** End the leftover process of a dead owner. Later effects wait until it is gone. */
  | { type: "end-leftover"; processId: string; process: ProcessIdentity }
  /** The event holds the text of the prompt. `partlyDone`: the prompt ran before, but Claude Code has no record of the run. */
  | { type: "push"; promptId: string; eventId: number; partlyDone?: true }
  /** Send the request that the API has refused at a limit once more. */
  | { type: "send-again"; id: string }
  /** Find an environment record for the process of a waiting turn, now or as soon as a client has one. */
  | { type: "find-environment"; turnId: string }
  | { type: "control"; commandId: string; by: string; request: ControlRequest }
  | { type: "answer"; requestId: string; decision: Decision }
  /** The process has repeated an answered request. The event holds the answer. */
  | { type: "answer-again"; requestId: string; eventId: number }
  | { type: "interrupt" }
  /** Stop subagents that Claude Code has left at work. */
  | { type: "stop-tasks"; taskIds: readonly string[] }
  | { type: "stop" }
  | { type: "kill" }
  /** Look at the folders before the first tool call of the turn. */
  | { type: "baseline"; turnId: string }
  /** Assess the commands of the turn's verification. */
  | { type: "judge"; turnId: string; number: number }
  /** End what a dead owner has left of the commands, then run them. */
  | { type: "verify"; turnId: string; number: number }
  | { type: "stop-checks" }
  /** Compare the folders, and write the receipt. */
  | { type: "look"; turnId: string; number: number }
  /** The turn has ended: drop all that is kept for it. */
  | { type: "forget"; turnId: string }
  | { type: "reply"; commandId: string; reply: CommandReply };

/**
 * Effects without a trace outside the server: a crash of the machine may take back what led to them. The next owner repeats a
 * look, an assessment and a search.
 */
export const TRACELESS: ReadonlySet<Effect["type"]> = new Set([
  "reply",
  "find-environment",
  "baseline",
  "judge",
  "look",
  "stop-checks",
  "forget",
]);

/** A step in the making. The functions of this folder change `state` and add to `events` and `effects`. */
export interface Draft {
  readonly state: SessionState;
  readonly events: SessionEvent[];
  readonly effects: Effect[];
  readonly at: number;
  /** Policy of the session alone, whichever client sent the running prompt. */
  readonly base: Policy;
  /** Policy of the running turn, otherwise of the last turn. */
  readonly policy: Policy;
  readonly ledger: LedgerDraft;
}

/** Adds an event and returns its id in the log. */
export function emit(draft: Draft, event: SessionEvent): number {
  draft.events.push(event);
  draft.state.lastEventId += 1;
  return draft.state.lastEventId;
}

/** Adds a notice about a session that no client attends to. */
export function noteUnattended(draft: Draft, message: string): void {
  emit(draft, { type: "notice", data: { kind: "unattended", message } });
}

export function accept(draft: Draft, command: Pick<Command, "id">, cursor: number, data?: JsonObject): void {
  const reply = { ok: true as const, cursor, ...(data && { data }) };
  draft.effects.push({ type: "reply", commandId: command.id, reply });
}

/** Refusal of a command that would begin a turn. */
export const TURN_RUNS = "A turn runs in the session. Wait for its end with claude_code_check (until: end).";

export function refuse(draft: Draft, command: Pick<Command, "id">, code: ErrorCode, message: string): void {
  draft.effects.push({ type: "reply", commandId: command.id, reply: { ok: false, refusal: { code, message } } });
}
