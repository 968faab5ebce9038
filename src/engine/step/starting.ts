import type { AddedPolicy } from "../../domain/approvals/session-policy.ts";
import type { SessionState } from "../../domain/session.ts";
import type { QueuedPrompt, Turn } from "../../domain/running-turn.ts";
import { policyOfStart } from "../policy/turn-policy.ts";
import { emit, type Draft } from "./draft.ts";
import { findSender } from "./senders.ts";

/** Requests the start and the end of a session's process. */

/** Stops the process gracefully, if it is starting or live. */
export function endProcess({ effects, state }: Draft): void {
  if (state.process.phase === "none" || state.process.phase === "ending") return;
  state.process = { ...state.process, phase: "ending" };
  effects.push({ type: "stop" });
}

/** Has the folders looked at before the first tool call of the turn. */
export function lookBefore({ effects, policy, state: { turn } }: Draft): void {
  if (!policy.receipts || !turn || turn.baselineEventId !== undefined) return;
  effects.push({ type: "baseline", turnId: turn.id });
}

interface StartOptions {
  readonly rerun: boolean;
  /** Set for a process that only sends the refused request again. */
  readonly sendsAgain?: true;
  readonly resumeAt?: string;
  /** Environment record of the requesting client, for a start without a prompt. */
  readonly environmentId?: string | undefined;
  /** Policy that the replaced process was started under. */
  readonly former?: AddedPolicy;
}

/** Returns the prompt of the turn, or the caller of a verification, with the sender for whom a process starts. */
function starterOf({ sender, turn }: SessionState): Pick<QueuedPrompt, "sender"> {
  if (turn?.origin === "verify") return sender === undefined ? {} : { sender };
  return turn?.prompt ?? {};
}

export function startProcess(
  { at, base, effects, state }: Draft,
  { environmentId = findSender(state, starterOf(state)).environmentId, former, ...how }: StartOptions = {
    rerun: false,
  },
  { again, since }: { again: number; since: number } = { again: 0, since: at },
): void {
  state.processCount += 1;
  const id = String(state.processCount);
  const policy = policyOfStart(base, state, former);
  state.process = { phase: "starting", id, since, startingMs: 0, waiting: true, again, ...(policy && { policy }) };
  const record = environmentId === undefined ? {} : { environmentId };
  effects.push({ type: "start", processId: id, first: state.processCount - again === 1, ...how, ...record });
}

/** Starts the process again after its owner died during the start. `before.since` keeps the place in the queue for a slot. */
export function restartProcess(draft: Draft, turn: Turn, before: { again: number; since: number }): void {
  const again = turn.goneOn === undefined ? turn.prompt && resumeAtOf(turn.prompt) : { sendsAgain: true as const };
  const how = { rerun: turn.rerun, ...again };
  startProcess(draft, how, { ...before, again: before.again + 1 });
}

export function resumeAtOf({ resumeAt }: QueuedPrompt): { resumeAt?: string } {
  return resumeAt === undefined ? {} : { resumeAt };
}

/** Until `installed` the process does not wait for a slot, so it takes no place in the queue. */
export function onInstalling(draft: Draft, { percent }: { readonly percent: number }): void {
  const { process } = draft.state;
  if (process.phase !== "starting" || !process.waiting) return;
  process.installing = true;
  emitPrepared(draft, percent);
}

/** Warns of turns that a conversation from another node lacks, in the log and in the result of the running turn. */
export function onRestored(
  draft: Draft,
  { goesOnFrom, missing }: { goesOnFrom: number; missing: readonly number[] },
): void {
  const { turn } = draft.state;
  if (missing.length === 0) {
    const message = "The conversation was copied to this node from the store, with all its turns.";
    return void emit(draft, { type: "notice", data: { kind: "owner.changed", message } });
  }
  const start = goesOnFrom === 0 ? "begins anew" : `goes on from the end of turn ${String(goesOnFrom)}`;
  const lost = `${numbersText(missing)} ${missing.length === 1 ? "is" : "are"} missing from Claude Code's memory`;
  const message = `The conversation ${start}: ${lost}, because the node that ran the session was lost before their end was stored. Changes of files remain.`;
  emit(draft, {
    type: "notice",
    data: { kind: "data_loss", message, details: { goesOnFrom, missing: missing.length } },
  });
  if (turn) turn.warnings = [message, ...(turn.warnings ?? [])];
}

/** Maximum number of turns named in a warning. */
const MAX_NAMED = 10;

function numbersText(numbers: readonly number[]): string {
  const more = numbers.length - MAX_NAMED;
  const named = numbers.slice(0, MAX_NAMED).join(", ");
  return `${numbers.length === 1 ? "turn" : "turns"} ${named}${more > 0 ? ` and ${String(more)} more` : ""}`;
}

/** Emits an event, because a change of the state alone is not stored. */
export function onInstalled(draft: Draft): void {
  const { process } = draft.state;
  if (process.phase === "none" || !process.installing) return;
  delete process.installing;
  emitPrepared(draft, 100);
}

function emitPrepared(draft: Draft, percent: number): void {
  const message = `Preparing Claude Code, ${String(percent)} %`;
  emit(draft, { type: "notice", data: { kind: "waiting", message, details: { percent } } });
}
