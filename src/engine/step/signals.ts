import type { BackgroundTask } from "../../domain/event.ts";
import type { SessionState, Turn } from "../../domain/session.ts";
import type { AgentSignal } from "../ports.ts";
import { openAsk, settleAsk } from "./asks.ts";
import { emit, type Draft } from "./draft.ts";
import { addResult, beginTurn, endTurn, finishTurn, push, runPending, type Ending } from "./turn.ts";

/** Of background work, in the state: tasks, and characters of each word about them. */
const TASKS_KEPT = 20;
const WORD_KEPT = 100;

type SignalOf<T extends AgentSignal["type"]> = Extract<AgentSignal, { type: T }>;

/** What Claude Code told. Signals of an earlier process never reach this function. */
export function onSignal(draft: Draft, signal: AgentSignal): void {
  if (!isNews(draft, signal)) return;
  switch (signal.type) {
    case "started":
      return onStarted(draft, signal);
    case "ready":
      return onReady(draft);
    case "reported":
      return onReported(draft, signal);
    case "busy":
      return onBusy(draft, signal);
    case "idle":
      return onIdle(draft);
    case "message":
      return onMessage(draft, signal);
    case "result":
      return addResult(draft, signal.result, emit(draft, { type: "message", data: { message: signal.message } }));
    case "prompt-settled":
      return onPromptSettled(draft, signal);
    case "background":
      return onBackground(draft, signal);
    case "asked":
      return onAsked(draft, signal);
    case "withdrawn":
      return onWithdrawn(draft, signal);
    case "notice":
      return onNotice(draft, signal);
    case "exited":
      return onExited(draft, signal);
  }
}

/** A closed session's log is final but for the exit of its process. Whatever comes in a turn is a sign of life. */
function isNews({ at, state }: Draft, signal: AgentSignal): signal is Exclude<AgentSignal, SignalOf<"alive">> {
  if (state.closed) return signal.type === "exited";
  // What an ending process still says is not the work of the turn that waits for its exit.
  if (state.turn && !state.turn.pending) state.turn.lastActivityAt = at;
  return signal.type !== "alive";
}

function onReady({ state }: Draft): void {
  if (state.process.phase === "starting") state.process = { ...state.process, phase: "live" };
}

/** Claude Code begins a turn by itself when background work has ended. */
function onBusy(draft: Draft, { id }: SignalOf<"busy">): void {
  const { process, turn } = draft.state;
  if (!turn && process.phase !== "ending") beginTurn(draft, id);
}

function onIdle(draft: Draft): void {
  const { turn } = draft.state;
  if (turn?.awaiting.length === 0) finishTurn(draft, turn);
}

function onMessage(draft: Draft, { message, toolUseId }: SignalOf<"message">): void {
  emit(draft, { type: "message", data: { message } });
  if (toolUseId === undefined) return;
  const { state } = draft;
  state.lastToolUseId = toolUseId;
  if (state.turn && !state.turn.pending) state.turn.lastToolUseId = toolUseId;
}

function onPromptSettled({ state }: Draft, { promptId }: SignalOf<"prompt-settled">): void {
  if (state.turn) state.turn.awaiting = state.turn.awaiting.filter((id) => id !== promptId);
}

function onBackground(draft: Draft, { tasks }: SignalOf<"background">): void {
  draft.state.background = inShort(tasks);
  draft.state.idleSince = draft.at;
  emit(draft, { type: "background.changed", data: { tasks } });
}

/** The state holds what is decided by; all of it is in the event. */
function inShort(tasks: readonly BackgroundTask[]): BackgroundTask[] {
  return tasks.slice(0, TASKS_KEPT).map(({ description, id, type }) => {
    return { id: id.slice(0, WORD_KEPT), type: type.slice(0, WORD_KEPT), description: description.slice(0, WORD_KEPT) };
  });
}

function onAsked(draft: Draft, { ask }: SignalOf<"asked">): void {
  if (draft.state.process.phase === "ending") {
    const message = "The session's process is being closed.";
    draft.effects.push({ type: "answer", requestId: ask.requestId, decision: { behavior: "deny", message } });
    return;
  }
  if (!draft.state.turn) beginTurn(draft, ask.requestId);
  openAsk(draft, ask);
}

function onWithdrawn(draft: Draft, { requestId }: SignalOf<"withdrawn">): void {
  const ask = draft.state.asks.find((open) => open.requestId === requestId);
  if (ask) settleAsk(draft, ask, { behavior: "deny", by: "withdrawn" });
}

function onNotice(draft: Draft, { details, kind, message }: SignalOf<"notice">): void {
  emit(draft, { type: "notice", data: { kind, message, ...(details && { details }) } });
}

function onStarted(draft: Draft, { pid, resumed, startedAt }: SignalOf<"started">): void {
  const { process, turn } = draft.state;
  if (process.phase === "none") return;
  const known = { ...(pid !== undefined && { pid }), ...(startedAt !== undefined && { startedAt }) };
  Object.assign(process, known);
  emit(draft, { type: "process.started", data: { processId: process.id, resumed, ...(pid !== undefined && { pid }) } });
  if (resumed || draft.state.processCount === 1) return;
  const message = "Claude Code has kept nothing of this session's earlier prompts: it starts afresh under the same id.";
  emit(draft, { type: "notice", data: { kind: "warning", message } });
  // There is no turn that Claude Code could go on with: the prompt never ran.
  if (turn?.rerun && turn.prompt && !turn.stopping) push(draft, turn.prompt);
}

function onReported(draft: Draft, { model, permissionMode, transcriptId }: SignalOf<"reported">): void {
  const { reported } = draft.state;
  if (transcriptId !== undefined) draft.state.transcriptId = transcriptId;
  const changed = {
    ...(model !== undefined && model !== reported.model && { model }),
    ...(permissionMode !== undefined && permissionMode !== reported.permissionMode && { permissionMode }),
  };
  if (Object.keys(changed).length === 0) return;
  Object.assign(reported, changed);
  emit(draft, { type: "session.configured", data: changed });
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
  if (state.background.length > 0) {
    state.background = [];
    if (!state.closed) emit(draft, { type: "background.changed", data: { tasks: [] } });
  }
  if (!turn) return;
  if (finished) finishTurn(draft, turn);
  else if (turn.pending) runPending(draft, turn);
  else endTurn(draft, turn, diedEnding(before.phase, turn, { code, signal, error }));
}

/** Whether a turn whose process has gone has come to its end: stopped, or done with nothing left open. */
function isFinished(turn: Turn, { asks, background }: SessionState): boolean {
  if (turn.stopping) return true;
  return turn.last !== undefined && turn.awaiting.length === 0 && asks.length === 0 && background.length === 0;
}

type Death = { code: number | null; signal: string | null; error: string | undefined };

function howItEnded({ code, signal }: Death): string {
  if (signal !== null) return `was killed by ${signal}`;
  return code === null ? "ended" : `exited with code ${String(code)}`;
}

/** Nobody asked it to end: either it never came up, or it was lost in the middle of its work. */
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

/** This node took the session over: whatever the dead owner ran is ended, and gone before anything else is done. */
export function onRecovered(draft: Draft): void {
  const { process } = draft.state;
  if (process.phase === "none") return;
  const { id, pid, startedAt } = process;
  const known = { ...(pid !== undefined && { pid }), ...(startedAt !== undefined && { startedAt }) };
  draft.effects.push({ type: "end-leftover", processId: id, ...known });
  // As if it had been up: a turn whose owner died is lost, whatever state its process was in.
  if (draft.state.turn) draft.state.process = { ...process, phase: "live" };
  onExited(draft, { type: "exited", code: null, signal: null, error: "The server that ran it has died." });
}
