import type { AddedPolicy } from "../../domain/approvals/session-policy.ts";
import type { AnsweredBy } from "../../domain/permission.ts";
import type { SessionState } from "../../domain/session.ts";
import type { QueuedPrompt, Turn } from "../../domain/running-turn.ts";
import type { AgentResult } from "../../domain/turn.ts";
import type { Verify } from "../../domain/verification.ts";
import { roundUsd } from "../../domain/usage.ts";
import { outcomeOf, type Ending } from "./endings.ts";
import { type HeldBack, limitText, reserveBudgets, settleBudgets, startLimit, weeklyLimit } from "./limits.ts";
import { heldEnding, holdBack, mayHoldBack } from "./waits.ts";
import { settleAllRequests } from "./requests/requests.ts";
import { emit, type Draft } from "./draft.ts";
import { mayTake, findSender, noteLastSender } from "./senders.ts";
import { endProcess, lookBefore, resumeAtOf, startProcess } from "./starting.ts";
import { restartIdleClock } from "./time.ts";

/** Maximum number of warnings kept for a turn. */
const MAX_WARNINGS = 5;

interface TurnStart {
  readonly prompt?: QueuedPrompt;
  readonly verify?: Verify | "own";
  /** Limit that holds the turn back, so that nothing is reserved for it yet. */
  readonly limit?: HeldBack | undefined;
}

/**
 * Begins a turn of `prompt`, of a verification on demand (`verify`), or of Claude Code itself, which starts from the folders as
 * the last receipt has seen them.
 */
export function beginTurn(draft: Draft, id: string, { limit, prompt, verify }: TurnStart = {}): Turn {
  const { at, state } = draft;
  const promptIds = prompt ? [prompt.promptId] : [];
  const origin = prompt ? "prompt" : verify ? "verify" : "self";
  const own = typeof verify === "object" ? { verify } : {};
  state.turnCount = (state.turnCount ?? 0) + 1;
  const { lastReceiptEventId } = state;
  const turn: Turn = {
    id,
    number: state.turnCount,
    origin,
    eventId: emit(draft, { type: "turn.started", data: { turnId: id, origin, promptIds: [...promptIds], ...own } }),
    ...(origin === "self" && lastReceiptEventId !== undefined && { baselineEventId: lastReceiptEventId }),
    startedAt: at,
    clock: { lastedMs: 0, ranMs: 0, silentMs: 0 },
    awaiting: promptIds,
    ...(prompt && { prompt }),
    pending: false,
    rerun: false,
    durationApiMs: 0,
    numTurns: 0,
    costUsd: 0,
  };
  state.turn = turn;
  delete state.waiting;
  delete state.refused;
  if (!limit) reserveBudgets(draft, turn);
  if (prompt) noteLastSender(state, prompt);
  else lookBefore(draft);
  return turn;
}

/** Begins the turn of `prompt` and hands the prompt to Claude Code, unless a limit holds the prompt back. */
function runPrompt(draft: Draft, prompt: QueuedPrompt): void {
  const limit = startLimit(draft);
  if (limit && !mayHoldBack(draft, prompt, limit)) return keepPrompt(draft, prompt, limit);
  const turn = beginTurn(draft, prompt.promptId, { prompt, limit });
  if (limit) holdBack(draft, turn, limit);
  else startTurn(draft, turn);
}

/** Keeps a prompt that may not start: held until the caller replies. A prompt that ends with its client fails. */
function keepPrompt(draft: Draft, prompt: QueuedPrompt, limit: HeldBack): void {
  const { at, state } = draft;
  if (prompt.limits?.endWithClient || limit.kind === "workspace")
    return endTurn(draft, beginTurn(draft, prompt.promptId, { prompt, limit }), heldEnding(limit));
  state.queue.unshift(prompt);
  holdQueue(draft);
  state.waiting = { ...limit, since: at };
  const message = `${limitText(limit)} Waiting prompts are held: release them after that, or reply.`;
  emit(draft, { type: "notice", data: { kind: "waiting", message, details: { ...limit } } });
}

/** Hands the prompt of a turn that has begun to Claude Code. Starts a process if there is none. */
export function startTurn(draft: Draft, turn: Turn): void {
  const { prompt } = turn;
  if (!prompt) return;
  if (turn.isHeldBack) {
    delete turn.isHeldBack;
    delete draft.state.waiting;
    reserveBudgets(draft, turn);
  }
  if (turn.rerun) return startProcess(draft, { rerun: true, ...resumeAtOf(prompt) });
  const isEnough = mayTake(draft, findSender(draft.state, prompt));
  // A running process cannot go back in the conversation (`resumeAt`) or take stricter terms, so another process is needed.
  if (prompt.resumeAt !== undefined || !isEnough) endProcess(draft);
  if (draft.state.process.phase === "ending") turn.pending = true;
  else startAndPush(draft, prompt);
}

/** Gives the waiting prompt to a new process after the exit of the old. `former`: policy that the old was started under. */
export function runPending(draft: Draft, turn: Turn, former: AddedPolicy | undefined): void {
  turn.pending = false;
  if (!turn.rerun && !turn.prompt) return;
  startProcess(draft, { rerun: turn.rerun, ...(turn.prompt && resumeAtOf(turn.prompt)), ...(former && { former }) });
  if (!turn.rerun && turn.prompt) push(draft, turn.prompt);
}

/** Goes on with a lost turn by Claude Code's own means: finished tools are not run again, permissions are asked again. */
function rerun(draft: Draft, prompt: QueuedPrompt, { baselineEventId, lastToolUseId, steered }: Turn): void {
  const limit = startLimit(draft);
  const turn = beginTurn(draft, `${prompt.promptId}.rerun`, { prompt, limit });
  if (baselineEventId !== undefined) turn.baselineEventId = baselineEventId;
  turn.rerun = true;
  turn.unheard = true;
  if (steered) turn.steered = steered;
  if (lastToolUseId !== undefined) turn.lastToolUseId = lastToolUseId;
  if (limit) holdBack(draft, turn, limit);
  else startTurn(draft, turn);
}

/** Adds `prompt` to the running turn. */
export function steer(draft: Draft, prompt: QueuedPrompt): void {
  const { turn } = draft.state;
  emit(draft, { type: "prompt.steered", data: { promptId: prompt.promptId } });
  if (turn) turn.steered = [...(turn.steered ?? []), prompt];
  push(draft, prompt);
}

const CONTINUE_TEXT =
  "The program that runs you died in the middle of your turn. Continue the task where you left off; retry what failed only because a request could not be answered.";

/**
 * Tells Claude Code to go on. After its server died, Claude Code may have ended the turn by itself, without the awaited answer,
 * and then has nothing to run again.
 */
export function tellToContinue(draft: Draft, turn: Turn): void {
  delete turn.unheard;
  const promptId = siblingOf(turn.prompt?.promptId ?? turn.id);
  const eventId = emit(draft, { type: "prompt.queued", data: { promptId, text: CONTINUE_TEXT } });
  turn.awaiting = [];
  steer(draft, { promptId, eventId });
}

/** Derives another id from `uuid`, always the same: Claude Code does not run a prompt twice under one id. */
export function siblingOf(uuid: string, distance = 1): string {
  const last = Number.parseInt(uuid.slice(-1), 16);
  return uuid.slice(0, -1) + ((last + distance) % 16).toString(16);
}

function startAndPush(draft: Draft, prompt: QueuedPrompt): void {
  if (draft.state.process.phase === "none") startProcess(draft, { rerun: false, ...resumeAtOf(prompt) });
  else lookBefore(draft);
  push(draft, prompt);
}

export function push(draft: Draft, { eventId, promptId }: QueuedPrompt, how: { partlyDone?: true } = {}): void {
  const { turn } = draft.state;
  // From here on Claude Code owes the prompt, even if `awaiting` had lost it before.
  if (turn && !turn.awaiting.includes(promptId)) turn.awaiting.push(promptId);
  draft.effects.push({ type: "push", promptId, eventId, ...how });
}

/** Adds one result of Claude Code to the running turn. The turn goes on until Claude Code is idle. */
export function addResult(draft: Draft, result: AgentResult, eventId: number): void {
  const { state } = draft;
  addCost(state, result);
  state.totals.turns += result.numTurns;
  const { turn } = state;
  if (!turn || turn.pending) return;
  turn.numTurns += result.numTurns;
  turn.durationApiMs += result.durationApiMs;
  turn.awaiting = turn.awaiting.filter((promptId) => !result.promptIds.includes(promptId));
  noteRefusal(draft, turn, result);
  // Claude Code had already ended the turn.
  if (turn.stopping?.reason === "subagents") return;
  if (result.text !== "" || turn.resultEventId === undefined) turn.resultEventId = eventId;
  if (!result.isEmpty) turn.isEmpty = false;
  else turn.isEmpty ??= true;
  const warnings = [...new Set([...(turn.warnings ?? []), ...(result.warnings ?? [])])];
  if (warnings.length > 0) turn.warnings = warnings.slice(0, MAX_WARNINGS);
  turn.last = outcomeOf(result);
}

/** Counts refusals in a row, and notes that the message which has sent the request again is answered. */
function noteRefusal({ at }: Draft, turn: Turn, { hasUnknownPrice, limit, promptIds }: AgentResult): void {
  if (turn.goneOn !== undefined && promptIds.includes(turn.goneOn)) delete turn.goneOn;
  if (hasUnknownPrice) turn.hasUnknownPrice = true;
  if (limit) turn.refusals = { count: (turn.refusals?.count ?? 0) + 1, since: turn.refusals?.since ?? at };
  else delete turn.refusals;
}

/** Adds the increase of Claude Code's cumulative cost, USD. */
export function addCost(state: SessionState, told: Pick<AgentResult, "costUsdTotal" | "isError">): void {
  const costUsd = newCost(state, told);
  state.totals.costUsd = roundUsd(state.totals.costUsd + costUsd);
  if (state.turn && !state.turn.pending) state.turn.costUsd = roundUsd(state.turn.costUsd + costUsd);
}

/**
 * Returns the cost since the last report, USD. Claude Code counts over the session, also after a resume. A smaller total means
 * a new count (/clear); a failure without cost, such as one at start-up, says nothing about spending.
 */
function newCost(state: SessionState, { costUsdTotal, isError }: Parameters<typeof addCost>[1]): number {
  if (isError && costUsdTotal === 0) return 0;
  const base = [state.reportedCostUsd, state.savedCostUsd, 0].find((total) => total <= costUsdTotal) ?? 0;
  state.reportedCostUsd = costUsdTotal;
  return costUsdTotal - base;
}

/** The only way to end a turn: settles requests, logs totals and runs the next prompt unless held. */
export function endTurn(draft: Draft, turn: Turn, ending: Ending, asksBy: AnsweredBy = "withdrawn"): void {
  const { state } = draft;
  settleAllRequests(draft, asksBy);
  const warnings = warningsOf(turn, ending);
  state.lastTurnEventId = emit(draft, {
    type: "turn.ended",
    data: {
      turnId: turn.id,
      ...ending,
      isError: ending.outcome !== "done",
      ...(warnings.length > 0 && { warnings }),
      ...(turn.resultEventId !== undefined && { resultEventId: turn.resultEventId }),
      ...(turn.receiptEventId !== undefined && { receiptEventId: turn.receiptEventId }),
      ...(turn.verification?.eventId !== undefined && { verificationEventId: turn.verification.eventId }),
      durationMs: turn.clock.lastedMs,
      durationApiMs: turn.durationApiMs,
      numTurns: turn.numTurns,
      costUsd: turn.costUsd,
      sessionTurns: state.totals.turns,
      sessionCostUsd: state.totals.costUsd,
    },
  });
  settleBudgets(draft, turn);
  state.turn = null;
  state.lastOutcome = ending.outcome;
  noteLimit(draft, turn, ending);
  if (turn.receiptEventId === undefined) delete state.lastReceiptEventId;
  else state.lastReceiptEventId = turn.receiptEventId;
  if (draft.policy.receipts || turn.verification) draft.effects.push({ type: "forget", turnId: turn.id });
  restartIdleClock(draft);
  if (mayRerun(draft, turn, ending) && turn.prompt) return rerun(draft, turn.prompt, turn);
  if (ending.outcome === "lost") holdQueue(draft);
  runNext(draft);
}

/** Notes what holds the session back, and the refused request that `continue` can send again. */
function noteLimit(draft: Draft, turn: Turn, { errorSubtype }: Ending): void {
  const { state } = draft;
  delete state.waiting;
  const weekly = errorSubtype === "plan_reserve" ? weeklyLimit(draft) : undefined;
  if (weekly) state.waiting = { ...weekly, since: draft.at };
  // Another message, or a decision to send the request again, would be behind the refusal.
  if (!turn.last?.limit || turn.goneOn !== undefined || turn.awaiting.length > 0) return;
  state.refused = { ...turn.last.limit, ...(turn.prompt && { prompt: turn.prompt }) };
}

const EMPTY_ANSWER = "Claude answered with no text. Read the events for what was done, or ask again.";

function warningsOf({ isEmpty = false, warnings = [] }: Turn, { outcome }: Ending): string[] {
  return outcome === "done" && isEmpty ? [EMPTY_ANSWER, ...warnings] : warnings;
}

/** Never reruns a turn lost twice, because the turn itself may kill Claude Code. */
export function mayRerun(draft: Draft, turn: Turn, { outcome }: Ending): boolean {
  const { policy, state } = draft;
  const isForbidden = state.suspendReason === "forbidden";
  // A turn whose work is over was not to be run again when it ended.
  if (turn.settling || turn.goneOn !== undefined) return false;
  return (
    outcome === "lost" &&
    policy.onLost === "resume" &&
    !turn.rerun &&
    !state.closed &&
    !isForbidden &&
    (startLimit(draft)?.kind ?? "workspace") === "workspace"
  );
}

/** Holds waiting prompts after a stop or a loss, until the caller releases them. */
export function holdQueue({ state }: Draft): void {
  for (const prompt of state.queue) prompt.held = true;
}

/**
 * Runs the first prompt that is not held, if nothing runs. Background work is not ended for a prompt that needs another
 * process: such a prompt waits, and prompts for the present process go first.
 */
export function runNext(draft: Draft): void {
  const { state } = draft;
  if (state.turn || state.closed) return;
  const isFree = state.background.length === 0;
  const next = state.queue.find((each) => !each.held && (isFree || mayTake(draft, findSender(state, each))));
  if (!next) return;
  state.queue = state.queue.filter((prompt) => prompt !== next);
  runPrompt(draft, next);
}
