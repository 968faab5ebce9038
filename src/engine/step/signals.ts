import type { BackgroundTask } from "../../domain/event.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import type { AgentSignal } from "../ports.ts";
import { openRequest, settleRequest } from "./requests/requests.ts";
import { emit, type Draft } from "./draft.ts";
import { restartIdleClock } from "./time.ts";
import { stopTurn } from "./deadlines.ts";
import { isEndedBySelf, stopSubagents } from "./subagents.ts";
import { countCost, isUnattendedOver } from "./unattended.ts";
import { isProcessSignal, onProcessSignal } from "./process.ts";
import { onRefused } from "./at-limit.ts";
import { budgetOf, weeklyLimit } from "./limits.ts";
import { addCost, addResult, beginTurn, holdQueue, runNext } from "./turn.ts";
import { endingOf } from "./endings.ts";
import { goOn, settleTurn } from "./verify.ts";
import type { Turn } from "../../domain/running-turn.ts";

/** Bounds of background work in the state: number of tasks, and characters of each field. */
const TASKS_KEPT = 20;
const WORD_KEPT = 100;

/** Signals that show Claude Code at work on the turn. */
const SIGNS_OF_WORK = new Set<AgentSignal["type"]>(["asked", "busy", "result"]);

type SignalOf<T extends AgentSignal["type"]> = Extract<AgentSignal, { type: T }>;

/** Handles a signal of the present process. `step` drops signals of earlier processes. */
export function onSignal(draft: Draft, signal: AgentSignal): void {
  if (!isNews(draft, signal)) return;
  if (isProcessSignal(signal)) return onProcessSignal(draft, signal);
  switch (signal.type) {
    case "reported":
      return onReported(draft, signal);
    case "busy":
      return onBusy(draft, signal);
    case "idle":
      return onIdle(draft, signal);
    case "message":
      return onMessage(draft, signal);
    case "result":
      return onResult(draft, signal);
    case "spent":
      return onSpent(draft, signal);
    case "plan":
      return onPlan(draft, signal);
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
  }
}

/**
 * Returns false for signals without news: `alive`, and all but `exited` in a closed session, whose log is final. Any signal
 * during a turn is a sign of life.
 */
function isNews({ state }: Draft, signal: AgentSignal): signal is Exclude<AgentSignal, SignalOf<"alive">> {
  if (state.closed) return signal.type === "exited";
  // Output of an ending process is not work of the turn that waits for the exit.
  if (state.turn && !state.turn.pending) {
    state.turn.clock.silentMs = 0;
    if (SIGNS_OF_WORK.has(signal.type)) delete state.turn.unheard;
  }
  return signal.type !== "alive";
}

/** Begins a turn, because Claude Code goes on by itself after background work has ended. */
function onBusy(draft: Draft, { id }: SignalOf<"busy">): void {
  const { process, turn } = draft.state;
  goOn(draft);
  // Claude Code asks the model by itself, so the refused request is no longer the last.
  if (turn && !turn.isHeldBack) delete draft.state.waiting;
  if (!turn && process.phase !== "ending") beginTurn(draft, id);
}

function onIdle(draft: Draft, { agents = [] }: SignalOf<"idle">): void {
  const { turn } = draft.state;
  // The exit of a killed process ends the turn. Ended here, the next prompt would go to the dying process.
  if (turn?.awaiting.length !== 0 || turn.stopping?.killed || turn.settling) return;
  if (draft.state.waiting) return;
  if (agents.length > 0 && endingOf(turn).outcome !== "done") stopSubagents(draft, turn, agents);
  else if (turn.last?.limit && !turn.stopping) onRefused(draft, turn, turn.last.limit);
  else settleTurn(draft, turn);
}

function onMessage(draft: Draft, { message, toolUseId }: SignalOf<"message">): void {
  emit(draft, { type: "message", data: { message } });
  if (toolUseId === undefined) return;
  const { state } = draft;
  const { turn } = state;
  state.lastToolUseId = toolUseId;
  if (!turn || turn.pending) return;
  turn.lastToolUseId = toolUseId;
  if (isUnattendedOver(draft)) stopTurn(draft, turn, "unattended");
  if (weeklyLimit(draft)) holdAndStop(draft, turn, "plan_reserve");
}

/** Stops a turn whose requests are paid beyond the plan, unless the operator's reserve allows that. */
function onPlan(draft: Draft, { account, report }: SignalOf<"plan">): void {
  const { reserve } = draft.policy.use;
  const { process, turn } = draft.state;
  if (process.phase !== "none") process.accountId = account.id;
  if (report.isUsingOverage && reserve && !reserve.allowOverage && turn) holdAndStop(draft, turn, "overage");
}

function holdAndStop(draft: Draft, turn: Turn, reason: "overage" | "plan_reserve"): void {
  if (draft.state.turn !== turn || turn.stopping || turn.settling || turn.pending) return;
  holdQueue(draft);
  stopTurn(draft, turn, reason);
}

function onResult(draft: Draft, { message, result }: SignalOf<"result">): void {
  if (!result.isError || result.costUsdTotal > 0) countCost(draft, result.costUsdTotal);
  addResult(draft, result, emit(draft, { type: "message", data: { message } }));
  // A turn with subagents still at work, or another prompt to come, goes on spending.
  const { background, turn } = draft.state;
  if (turn && (background.length > 0 || turn.awaiting.length > 0)) checkBudget(draft, turn, result.costUsdTotal);
}

function onPromptSettled({ state }: Draft, { promptId }: SignalOf<"prompt-settled">): void {
  // A pending turn waits for the exit of this process, and has not given it a prompt.
  if (state.turn && !state.turn.pending) state.turn.awaiting = state.turn.awaiting.filter((id) => id !== promptId);
}

function onBackground(draft: Draft, { tasks }: SignalOf<"background">): void {
  const before = draft.state.background;
  const now = shortenTasks(tasks);
  // A new owner that attaches gets the tasks again.
  if (tasks.length <= TASKS_KEPT && areSameTasks(before, now)) return;
  draft.state.background = now;
  restartIdleClock(draft);
  emit(draft, { type: "background.changed", data: { tasks } });
  // A prompt under stricter terms may have waited for the end of background work.
  if (now.length === 0) runNext(draft);
}

function areSameTasks(some: readonly BackgroundTask[], others: readonly BackgroundTask[]): boolean {
  const isSame = ({ description, id, type }: BackgroundTask, other: BackgroundTask | undefined) =>
    id === other?.id && type === other.type && description === other.description;
  return some.length === others.length && some.every((task, index) => isSame(task, others[index]));
}

/** Shortens tasks to the parts that decisions need. The event holds all. */
function shortenTasks(tasks: readonly BackgroundTask[]): BackgroundTask[] {
  return tasks.slice(0, TASKS_KEPT).map(({ description, id, type }) => {
    return { id: id.slice(0, WORD_KEPT), type: type.slice(0, WORD_KEPT), description: description.slice(0, WORD_KEPT) };
  });
}

function onAsked(draft: Draft, { request }: SignalOf<"asked">): void {
  const { process, turn } = draft.state;
  if (process.phase === "ending" || (turn && isEndedBySelf(turn))) {
    const message = "The session's process is being closed.";
    draft.effects.push({ type: "answer", requestId: request.requestId, decision: { behavior: "deny", message } });
    return;
  }
  if (answerIfKnown(draft, request)) return;
  goOn(draft);
  if (!turn) beginTurn(draft, request.requestId);
  openRequest(draft, request);
}

/** True if a former owner was asked before. An open request stays open, an answered request gets its answer again. */
function answerIfKnown({ effects, state: { answered, requests } }: Draft, { requestId }: PermissionRequest): boolean {
  const eventId = answered.find((answer) => answer.requestId === requestId)?.eventId;
  if (eventId !== undefined) effects.push({ type: "answer-again", requestId, eventId });
  return eventId !== undefined || requests.some((open) => open.requestId === requestId);
}

function onWithdrawn(draft: Draft, { requestId }: SignalOf<"withdrawn">): void {
  const request = draft.state.requests.find((open) => open.requestId === requestId);
  if (request) settleRequest(draft, request, { behavior: "deny", by: "withdrawn" });
}

function onNotice(draft: Draft, { details, kind, message }: SignalOf<"notice">): void {
  emit(draft, { type: "notice", data: { kind, message, ...(details && { details }) } });
}

function onReported(draft: Draft, { model, permissionMode, transcriptId }: SignalOf<"reported">): void {
  const { reported } = draft.state;
  if (transcriptId !== undefined) {
    draft.state.transcriptId = transcriptId;
    draft.state.turnsBefore = draft.state.totals.turns;
  }
  const changed = {
    ...(model !== undefined && model !== reported.model && { model }),
    ...(permissionMode !== undefined && permissionMode !== reported.permissionMode && { permissionMode }),
  };
  if (Object.keys(changed).length === 0) return;
  Object.assign(reported, changed);
  emit(draft, { type: "session.configured", data: changed });
}

/** Counts cost reported between results. The first report of a session that began as a copy is the original's cost. */
function onSpent(draft: Draft, { atStart, costUsdTotal }: Extract<AgentSignal, { type: "spent" }>): void {
  const { state } = draft;
  if (atStart) {
    const isInherited = state.origin !== undefined && state.totals.turns === 0 && state.totals.costUsd === 0;
    // The transcript of another node may have an earlier count.
    const isEarlier = costUsdTotal < state.reportedCostUsd;
    if (isInherited || isEarlier) state.reportedCostUsd = state.savedCostUsd = costUsdTotal;
  } else {
    countCost(draft, costUsdTotal);
    if (!state.turn) return;
    // A stopped turn, and a turn that is lost, may get no further result that counts the cost.
    if (state.turn.stopping || state.turn.reserved) addCost(state, { costUsdTotal, isError: false });
    checkBudget(draft, state.turn, costUsdTotal);
  }
}

/** Stops a turn that has spent `budgetUsd`. Each prompt has the budget anew; Claude Code's own count is per process. */
function checkBudget(draft: Draft, turn: Turn, costUsdTotal: number): void {
  const { policy, state } = draft;
  const spent = turn.costUsd + Math.max(0, costUsdTotal - state.reportedCostUsd);
  const budgetUsd = budgetOf(policy, turn);
  if (budgetUsd === undefined || spent < budgetUsd || turn.pending || turn.settling) return;
  stopTurn(draft, turn, "budget");
}
