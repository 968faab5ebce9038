import type { AddedPolicy } from "../../domain/approvals/session-policy.ts";
import type { QueuedPrompt, Turn } from "../../domain/session.ts";
import { policyOfStart } from "../policy/of-turn.ts";
import type { Draft } from "./draft.ts";
import { senderIn } from "./senders.ts";

/** A session's process is asked to start, or to end. */

/** Stops the process in good order, if there is one that is up. */
export function endProcess({ effects, state }: Draft): void {
  if (state.process.phase === "none" || state.process.phase === "ending") return;
  state.process = { ...state.process, phase: "ending" };
  effects.push({ type: "stop" });
}

interface How {
  readonly rerun: boolean;
  readonly resumeAt?: string;
  /** The record of the client that asks for it, where it is not for a prompt. */
  readonly environmentId?: string | undefined;
  /** What the process was started under whose place it takes. */
  readonly former?: AddedPolicy;
}

export function startProcess(
  { at, base, effects, state }: Draft,
  { environmentId = senderIn(state, state.turn?.prompt ?? {}).environmentId, former, ...how }: How = { rerun: false },
  { again, since }: { again: number; since: number } = { again: 0, since: at },
): void {
  state.processCount += 1;
  const id = String(state.processCount);
  const policy = policyOfStart(base, state, former);
  state.process = { phase: "starting", id, since, startingMs: 0, waiting: true, again, ...(policy && { policy }) };
  const record = environmentId === undefined ? {} : { environmentId };
  effects.push({ type: "start", processId: id, first: state.processCount - again === 1, ...how, ...record });
}

/** The start of a process came to nothing with its owner: another one takes its place in the queue. */
export function restartProcess(draft: Draft, turn: Turn, before: { again: number; since: number }): void {
  const how = { rerun: turn.rerun, ...(turn.prompt && resumeAtOf(turn.prompt)) };
  startProcess(draft, how, { ...before, again: before.again + 1 });
}

export function resumeAtOf({ resumeAt }: QueuedPrompt): { resumeAt?: string } {
  return resumeAt === undefined ? {} : { resumeAt };
}
