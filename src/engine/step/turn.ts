import type { TurnEnded } from "../../domain/event.ts";
import type { AnsweredBy } from "../../domain/permission.ts";
import type { StopReason, Turn } from "../../domain/session.ts";
import type { AgentResult } from "../../domain/turn.ts";
import { settleAllAsks } from "./asks.ts";
import { emit, type Draft } from "./draft.ts";

export interface QueuedPrompt {
  promptId: string;
  eventId: number;
}

/** How a turn ends, before the numbers are added. */
export type Ending = Pick<TurnEnded, "outcome" | "errorSubtype" | "category" | "code" | "message">;

export function beginTurn(draft: Draft, id: string, prompt?: QueuedPrompt): Turn {
  const { at, state } = draft;
  const promptIds = prompt ? [prompt.promptId] : [];
  const turn: Turn = {
    id,
    origin: prompt ? "prompt" : "self",
    startedAt: at,
    awaiting: promptIds,
    lastActivityAt: at,
    waitedMs: 0,
    durationApiMs: 0,
    numTurns: 0,
    costUsd: 0,
  };
  state.turn = turn;
  emit(draft, { type: "turn.started", data: { turnId: id, origin: turn.origin, promptIds: [...promptIds] } });
  return turn;
}

/** Begins the turn of a prompt and hands it to Claude Code, starting a process where there is none. */
export function runPrompt(draft: Draft, prompt: QueuedPrompt): void {
  const turn = beginTurn(draft, prompt.promptId, prompt);
  if (draft.state.process.phase === "ending") turn.pending = prompt;
  else push(draft, prompt);
}

export function push(draft: Draft, prompt: QueuedPrompt): void {
  const { at, effects, state } = draft;
  if (state.process.phase === "none") {
    state.processCount += 1;
    const id = String(state.processCount);
    state.process = { phase: "starting", id, since: at };
    effects.push({ type: "start", processId: id, first: state.processCount === 1 });
  }
  effects.push({ type: "push", promptId: prompt.promptId, eventId: prompt.eventId });
}

/** Adds one result of Claude Code to the running turn. The turn goes on until Claude Code is idle. */
export function addResult(draft: Draft, result: AgentResult, eventId: number): void {
  const { state } = draft;
  // Claude Code counts cost over the session, also after a resume; a smaller total means that it began anew (/clear).
  const spent = result.costUsdTotal - state.reportedCostUsd;
  const costUsd = spent >= 0 ? spent : result.costUsdTotal;
  state.reportedCostUsd = result.costUsdTotal;
  state.totals.turns += result.numTurns;
  state.totals.costUsd += costUsd;
  const { turn } = state;
  if (!turn) return;
  turn.numTurns += result.numTurns;
  turn.costUsd += costUsd;
  turn.durationApiMs += result.durationApiMs;
  turn.awaiting = turn.awaiting.filter((promptId) => !result.promptIds.includes(promptId));
  if (result.text !== "" || turn.resultEventId === undefined) turn.resultEventId = eventId;
  turn.last = outcomeOf(result);
}

function outcomeOf(result: AgentResult): NonNullable<Turn["last"]> {
  if (!result.isError) return { outcome: "done" };
  if (result.terminalReason?.startsWith("aborted")) return { outcome: "interrupted", errorSubtype: "interrupted" };
  const errorSubtype = result.subtype === "success" ? (result.terminalReason ?? "error") : result.subtype;
  return { outcome: "failed", errorSubtype, ...(result.category && { category: result.category }) };
}

/** Claude Code is idle, or gone after its result: the first reason to stop decides, else the last result. */
export function finishTurn(draft: Draft, turn: Turn): void {
  if (turn.stopping) endTurn(draft, turn, stoppedEnding(turn.stopping.reason, turn.stopping.by));
  else endTurn(draft, turn, turn.last ?? { outcome: "done" });
}

export function stoppedEnding(reason: StopReason, by: string): Ending {
  switch (reason) {
    case "interrupt":
      return { outcome: "interrupted", errorSubtype: "interrupted", message: `The turn was interrupted by ${by}.` };
    case "time_limit":
      return timedOut("time_limit", "limit", "The turn reached the server's time limit and was ended.");
    case "inactivity":
      return timedOut("inactivity", "connection", "Claude Code gave no sign of life and the turn was ended.");
    case "init_timeout":
      return timedOut("init_timeout", "configuration", "Claude Code did not start in time (sessionInitTimeoutMs).");
  }
}

function timedOut(errorSubtype: string, category: NonNullable<Ending["category"]>, message: string): Ending {
  return { outcome: "failed", errorSubtype, category, code: "TIMEOUT", message };
}

/** The one way a turn ends: asks are closed, totals told, and the next prompt of the queue is run unless it is held. */
export function endTurn(draft: Draft, turn: Turn, ending: Ending, asksBy: AnsweredBy = "withdrawn"): void {
  const { at, state } = draft;
  settleAllAsks(draft, asksBy);
  state.lastTurnEventId = emit(draft, {
    type: "turn.ended",
    data: {
      turnId: turn.id,
      ...ending,
      isError: ending.outcome !== "done",
      ...(turn.resultEventId !== undefined && { resultEventId: turn.resultEventId }),
      durationMs: at - turn.startedAt,
      durationApiMs: turn.durationApiMs,
      numTurns: turn.numTurns,
      costUsd: turn.costUsd,
      sessionTurns: state.totals.turns,
      sessionCostUsd: state.totals.costUsd,
    },
  });
  state.turn = null;
  state.lastOutcome = ending.outcome;
  state.idleSince = at;
  if (ending.outcome !== "done" && ending.outcome !== "failed") state.queueHeld = state.queue.length > 0;
  runNext(draft);
}

/** Runs the first prompt of the queue if nothing runs and nothing holds it. */
export function runNext(draft: Draft): void {
  const { state } = draft;
  if (state.turn || state.closed || state.queueHeld) return;
  const next = state.queue.shift();
  if (next) runPrompt(draft, next);
}
