import { promptsOf, type SessionState, type Turn } from "../../domain/session.ts";
import type { AgentSignal } from "../ports.ts";
import { CLIENT_GONE, dropPrompt, expireSession } from "./stop.ts";
import { emit, type Draft } from "./draft.ts";
import { beIdle, clockOf } from "./time.ts";
import { endingOf, endTurn, finishTurn, push, runPending, type Ending } from "./turn.ts";

/** The coming and going of a session's process. */

type SignalOf<T extends AgentSignal["type"]> = Extract<AgentSignal, { type: T }>;
type OfProcess = SignalOf<"admitted" | "started" | "ready" | "exited">;

export function isOfProcess(signal: AgentSignal): signal is OfProcess {
  if (signal.type === "admitted") return true;
  return signal.type === "started" || signal.type === "ready" || signal.type === "exited";
}

export function onProcess(draft: Draft, signal: OfProcess): void {
  switch (signal.type) {
    case "admitted":
      return onAdmitted(draft);
    case "started":
      return onStarted(draft, signal);
    case "ready":
      return onReady(draft);
    case "exited":
      return onExited(draft, signal);
  }
}

/** Until here the clock of its turn stood still. */
function onAdmitted(draft: Draft): void {
  const { at, state } = draft;
  const { process, turn } = state;
  if (process.phase === "none" || !process.waiting) return;
  delete process.waiting;
  process.since = at;
  process.startingMs = 0;
  beIdle(draft);
  if (turn) clockOf(turn).silentMs = 0;
}

function onStarted(draft: Draft, { missing, pid, resumed, startedAt }: SignalOf<"started">): void {
  const { origin, process, processCount } = draft.state;
  if (process.phase === "none") return;
  delete process.waiting;
  const known = { ...(pid !== undefined && { pid }), ...(startedAt !== undefined && { startedAt }) };
  Object.assign(process, known);
  emit(draft, { type: "process.started", data: { processId: process.id, resumed, ...(pid !== undefined && { pid }) } });
  if (!resumed && (processCount > 1 || origin)) {
    const message =
      "Claude Code has no transcript of this session's earlier prompts: it starts over under the same id.";
    emit(draft, { type: "notice", data: { kind: "warning", message } });
  }
  giveMissing(draft, resumed ? (missing ?? []) : undefined);
}

/** What of a lost turn never ran is given once more; undefined is all of it. With the rest Claude Code goes on by itself. */
function giveMissing(draft: Draft, missing: readonly string[] | undefined): void {
  const { turn } = draft.state;
  if (!turn?.rerun || turn.stopping) return;
  for (const prompt of promptsOf(draft.state)) {
    if (missing && !missing.includes(prompt.promptId)) continue;
    const isFirst = prompt.promptId === turn.prompt?.promptId;
    // What has joined the turn since it is run again was handed to this process then.
    if (!isFirst && turn.awaiting.includes(prompt.promptId)) continue;
    if (isFirst) delete turn.unheard;
    push(draft, prompt, isFirst && turn.lastToolUseId !== undefined ? { partlyDone: true } : {});
  }
}

function onReady({ state }: Draft): void {
  if (state.process.phase === "starting") state.process = { ...state.process, phase: "live" };
}

function onExited(draft: Draft, { code, signal, error }: SignalOf<"exited">): void {
  const { state } = draft;
  const before = state.process;
  if (before.phase === "none") return;
  const expected = before.phase === "ending" || state.turn?.stopping?.killed === true;
  emit(draft, {
    type: "process.exited",
    data: { processId: before.id, code, signal, expected, ...(error !== undefined && { error }) },
  });
  state.process = { phase: "none" };
  if (signal === "SIGKILL") state.reportedCostUsd = state.savedCostUsd;
  else state.savedCostUsd = state.reportedCostUsd;
  const { turn } = state;
  const finished = turn !== null && isFinished(turn, state);
  endBackground(draft);
  if (draft.policy.ephemeral) return expireSession(draft, turn && finished ? endingOf(turn) : undefined);
  if (!turn) return;
  if (finished) finishTurn(draft, turn);
  else if (turn.pending) runPending(draft, turn);
  else endTurn(draft, turn, diedEnding(before.phase, turn, { code, signal, error }));
}

/** What ran behind the turns has gone with its process. */
function endBackground(draft: Draft): void {
  const { state } = draft;
  if (state.background.length === 0) return;
  state.background = [];
  if (!state.closed) emit(draft, { type: "background.changed", data: { tasks: [] } });
}

/** Whether a turn whose process has gone has come to its end: stopped, or done with nothing left open. */
function isFinished(turn: Turn, { requests, background }: SessionState): boolean {
  if (turn.stopping) return true;
  return turn.last !== undefined && turn.awaiting.length === 0 && requests.length === 0 && background.length === 0;
}

type Death = { code: number | null; signal: string | null; error: string | undefined };

function howItEnded({ code, signal }: Death): string {
  if (signal !== null) return `was killed by ${signal}`;
  return code === null ? "ended" : `exited with code ${String(code)}`;
}

/** An exit that was not requested: the process did not start, or was lost during its work. */
function diedEnding(phase: SessionState["process"]["phase"], { lastToolUseId }: Turn, death: Death): Ending {
  const how = howItEnded(death);
  const why = death.error === undefined ? "" : ` ${death.error.replace(/[.\s]*$/, ".")}`;
  if (phase === "starting") {
    const message = `Claude Code did not start: it ${how}.${why}`;
    return { outcome: "failed", errorSubtype: "start_failed", category: "configuration", message };
  }
  const last = lastToolUseId ? ` The last tool call seen is ${lastToolUseId}; its outcome may be unknown.` : "";
  const message = `Claude Code ${how} in the middle of the turn.${why}${last} Reply to the session to go on.`;
  return { outcome: "lost", errorSubtype: "lost", message };
}

/**
 * This node took the session over: whatever the dead owner ran is ended, and gone before anything else is done. Prompts that were
 * to end with their client end with the server that ran them: it is not known whether that client is still there.
 */
export function onRecovered(draft: Draft): void {
  const { process, queue } = draft.state;
  for (const { limits, promptId } of queue) if (limits?.endWithClient) dropPrompt(draft, promptId, CLIENT_GONE);
  if (process.phase === "none") return;
  const { id, pid, startedAt } = process;
  const known = { ...(pid !== undefined && { pid }), ...(startedAt !== undefined && { startedAt }) };
  draft.effects.push({ type: "end-leftover", processId: id, ...known });
  // As if it had been up: a turn whose owner died is lost, whatever state its process was in.
  const { savedCostUsd, turn } = draft.state;
  if (turn) draft.state.process = { ...process, phase: "live" };
  const isBound = turn?.prompt?.limits?.endWithClient === true;
  if (isBound) turn.pending = false;
  const policy = isBound ? { ...draft.policy, onLost: "report" as const } : draft.policy;
  onExited(
    { ...draft, policy },
    { type: "exited", code: null, signal: null, error: "The server that ran it has died." },
  );
  // It is unknown whether the process saved its last costs.
  draft.state.savedCostUsd = savedCostUsd;
}
