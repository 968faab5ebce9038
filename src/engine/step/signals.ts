import type { SessionState, Turn } from "../../domain/session.ts";
import type { AgentSignal } from "../ports.ts";
import { openAsk, settleAsk } from "./asks.ts";
import { emit, type Draft } from "./draft.ts";
import { addResult, beginTurn, endTurn, finishTurn, push, type Ending } from "./turn.ts";

type SignalOf<T extends AgentSignal["type"]> = Extract<AgentSignal, { type: T }>;

/** What Claude Code told. Signals of an earlier process never reach this function. */
export function onSignal(draft: Draft, signal: AgentSignal): void {
  const { at, state } = draft;
  if (signal.type === "exited") return onExited(draft, signal);
  // A closed session's log is final but for the exit of its process.
  if (state.closed) return;
  if (state.turn && signal.type !== "started") state.turn.lastActivityAt = at;
  switch (signal.type) {
    case "started":
      return onStarted(draft, signal);
    case "ready":
      if (state.process.phase === "starting") state.process = { ...state.process, phase: "live" };
      return;
    case "alive":
      return;
    case "reported":
      return onReported(draft, signal);
    case "busy":
      // Claude Code begins a turn by itself when background work has ended.
      if (!state.turn && state.process.phase !== "ending") beginTurn(draft, signal.id);
      return;
    case "idle":
      if (state.turn && state.turn.awaiting.length === 0) finishTurn(draft, state.turn);
      return;
    case "asked":
      if (!state.turn) beginTurn(draft, signal.ask.requestId);
      return openAsk(draft, signal.ask);
    case "withdrawn": {
      const ask = state.asks.find(({ requestId }) => requestId === signal.requestId);
      if (ask) settleAsk(draft, ask, { behavior: "deny", by: "withdrawn" });
      return;
    }
    default:
      return onNews(draft, signal);
  }
}

type News = SignalOf<"message" | "result" | "prompt-settled" | "background" | "notice">;

/** Signals that say how the work goes on, without a say in who runs or waits. */
function onNews(draft: Draft, signal: News): void {
  const { at, state } = draft;
  switch (signal.type) {
    case "message":
      emit(draft, { type: "message", data: { message: signal.message } });
      if (signal.toolUseId !== undefined) state.lastToolUseId = signal.toolUseId;
      return;
    case "result":
      return addResult(draft, signal.result, emit(draft, { type: "message", data: { message: signal.message } }));
    case "prompt-settled":
      if (state.turn) state.turn.awaiting = state.turn.awaiting.filter((id) => id !== signal.promptId);
      return;
    case "background":
      state.background = signal.tasks;
      state.idleSince = at;
      emit(draft, { type: "background.changed", data: { tasks: signal.tasks } });
      return;
    case "notice": {
      const { kind, message, details } = signal;
      emit(draft, { type: "notice", data: { kind, message, ...(details && { details }) } });
    }
  }
}

function onStarted(draft: Draft, { pid, resumed }: SignalOf<"started">): void {
  const { process } = draft.state;
  if (process.phase === "none") return;
  if (pid !== undefined) process.pid = pid;
  emit(draft, {
    type: "process.started",
    data: { processId: process.id, resumed, ...(pid !== undefined && { pid }) },
  });
}

function onReported(draft: Draft, { model, permissionMode }: SignalOf<"reported">): void {
  const { reported } = draft.state;
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
  if (state.background.length > 0) {
    state.background = [];
    emit(draft, { type: "background.changed", data: { tasks: [] } });
  }
  const { turn } = state;
  if (turn?.pending) {
    const { pending } = turn;
    delete turn.pending;
    push(draft, pending);
  } else if (turn) {
    const finished = turn.stopping !== undefined || (turn.last !== undefined && turn.awaiting.length === 0);
    if (finished) finishTurn(draft, turn);
    else endTurn(draft, turn, diedEnding(before.phase, state, { code, signal, error }));
  }
}

type Death = { code: number | null; signal: string | null; error: string | undefined };

/** Nobody asked it to end: either it never came up, or it was lost in the middle of its work. */
function diedEnding(phase: SessionState["process"]["phase"], state: SessionState, death: Death): Ending {
  const how = death.signal ? `was killed by ${death.signal}` : `exited with code ${String(death.code)}`;
  const why = death.error === undefined ? "" : ` ${death.error}`;
  if (phase === "starting") {
    const message = `Claude Code did not start: it ${how}.${why}`;
    return { outcome: "failed", errorSubtype: "start_failed", category: "configuration", message };
  }
  const last = state.lastToolUseId ? ` The last tool call seen is ${state.lastToolUseId}; its outcome may be unknown.` : "";
  const message = `Claude Code ${how} in the middle of the turn.${why}${last} Reply to the session to go on.`;
  return { outcome: "lost", errorSubtype: "lost", message };
}

/** This node took the session over: whatever the dead owner ran is gone. */
export function onRecovered(draft: Draft): void {
  const { state } = draft;
  const error = "The server that ran it has died.";
  if (state.process.phase !== "none") onExited(draft, { type: "exited", code: null, signal: null, error });
  if (state.turn && !state.closed) endRecovered(draft, state.turn);
}

function endRecovered(draft: Draft, turn: Turn): void {
  endTurn(draft, turn, { outcome: "lost", errorSubtype: "lost", message: "The server that ran the turn has died." });
}
