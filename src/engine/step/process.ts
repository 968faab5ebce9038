import { identityOf } from "../../domain/process.ts";
import { promptsOf, type SessionState } from "../../domain/session.ts";
import type { QueuedPrompt, Turn } from "../../domain/running-turn.ts";
import type { AgentSignal } from "../ports.ts";
import { lookAtWait, onRefused, waitAgain } from "./at-limit.ts";
import { noteEnvironment } from "./senders.ts";
import { CLIENT_GONE, dropPrompt, expireSession } from "./stop.ts";
import { emit, type Draft, type Happening } from "./draft.ts";
import { addLostWork, forMsAtStop, isEndedBySelf } from "./subagents.ts";
import { restartIdleClock } from "./time.ts";
import { lookBefore, onInstalled, onInstalling, onRestored, restartProcess } from "./starting.ts";
import { endTurn, holdQueue, mayRerun, push, runNext, runPending } from "./turn.ts";
import { type Death, diedEnding, endingOf, type Ending } from "./endings.ts";
import { settleAgain, settleTurn } from "./verify.ts";

/** Handles the start, the exit and the takeover of a session's process. */

type SignalOf<T extends AgentSignal["type"]> = Extract<AgentSignal, { type: T }>;
type Recovered = Extract<Happening, { type: "recovered" }>;
type RunningProcess = Exclude<SessionState["process"], { phase: "none" }>;
const PROCESS_SIGNALS = [
  ...(["installing", "installed", "admitted", "restored"] as const),
  ...(["started", "attached", "ready", "exited"] as const),
];
type ProcessSignal = SignalOf<(typeof PROCESS_SIGNALS)[number]>;

export function isProcessSignal(signal: AgentSignal): signal is ProcessSignal {
  return PROCESS_SIGNALS.some((type) => type === signal.type);
}

export function onProcessSignal(draft: Draft, signal: ProcessSignal): void {
  switch (signal.type) {
    case "installing":
      return onInstalling(draft, signal);
    case "installed":
      return onInstalled(draft);
    case "admitted":
      return onAdmitted(draft);
    case "restored":
      return onRestored(draft, signal);
    case "started":
      return onStarted(draft, signal);
    case "attached":
      if (signal.environmentId !== undefined) noteEnvironment(draft.state, signal.environmentId);
      return onLinesLost(draft, signal);
    case "ready":
      return onReady(draft);
    case "exited":
      return onExited(draft, signal);
  }
}

/** Restarts the clocks, because the time until a slot was free does not count for the turn. */
function onAdmitted(draft: Draft): void {
  const { at, state } = draft;
  const { process, turn } = state;
  if (process.phase === "none" || !process.waiting) return;
  delete process.waiting;
  process.since = at;
  process.startingMs = 0;
  restartIdleClock(draft);
  if (turn) turn.clock.silentMs = 0;
}

function onStarted(draft: Draft, signal: SignalOf<"started">): void {
  const { environmentId, identity, missing, pid, resumed, shim } = signal;
  const { lastTurnEventId, origin, process } = draft.state;
  if (process.phase === "none") return;
  delete process.waiting;
  if (identity) draft.state.identity = identity;
  Object.assign(process, identityOf(signal), shim && { shim });
  noteEnvironment(draft.state, environmentId);
  emit(draft, { type: "process.started", data: { processId: process.id, resumed, ...(pid !== undefined && { pid }) } });
  if (!resumed && (lastTurnEventId !== null || origin)) {
    const message =
      "Claude Code has no transcript of this session's earlier prompts: it starts over under the same id.";
    emit(draft, { type: "notice", data: { kind: "warning", message } });
  }
  lookBefore(draft);
  pushMissing(draft, resumed ? (missing ?? []) : undefined);
}

/** Gives the prompts of a lost turn that never ran once more: those in `missing`, or all if `undefined`. */
function pushMissing(draft: Draft, missing: readonly string[] | undefined): void {
  const { turn } = draft.state;
  if (!turn?.rerun || turn.stopping) return;
  for (const prompt of promptsOf(draft.state)) {
    if (missing && !missing.includes(prompt.promptId)) continue;
    const isFirst = prompt.promptId === turn.prompt?.promptId;
    // A prompt that joined during the rerun was already given to this process.
    if (!isFirst && turn.awaiting.includes(prompt.promptId)) continue;
    if (isFirst) {
      delete turn.unheard;
      turn.given = true;
    }
    push(draft, prompt, pushOptions(turn, prompt));
  }
}

/** Stable until Claude Code begins a rerun, so that a repeated hand-over gives the prompt unchanged. */
function pushOptions(turn: Turn, { promptId }: QueuedPrompt): { partlyDone?: true } {
  const isPartlyDone = turn.rerun && promptId === turn.prompt?.promptId && turn.lastToolUseId !== undefined;
  return isPartlyDone ? { partlyDone: true } : {};
}

function onReady({ state }: Draft): void {
  if (state.process.phase === "starting") state.process = { ...state.process, phase: "live" };
}

function onExited(draft: Draft, { code, signal, error, subtype }: SignalOf<"exited">): void {
  const { state } = draft;
  const before = state.process;
  if (before.phase === "none") return;
  emitExit(draft, before, { code, signal, error });
  state.process = { phase: "none" };
  // A process that is gone repeats no request.
  for (const answer of state.answered) delete answer.eventId;
  noteSavedCost(state, signal);
  const { background, turn } = state;
  const finished = turn !== null && isFinished(turn, state);
  const { ephemeral } = draft.policy;
  endBackground(draft);
  // A prompt may have waited for the end of background work.
  if (!turn) return ephemeral ? expireSession(draft) : runNext(draft);
  // The wait goes on without a process.
  if (state.waiting && !ephemeral) return lookAtWait(draft);
  if (turn.settling) return ephemeral ? expireSession(draft, turn.settling.ending) : undefined;
  if (turn.pending && !finished && !ephemeral) return runPending(draft, turn, before.policy);
  const died = () => diedEnding(before.phase, turn, { code, signal, error, subtype });
  endExited(draft, turn, addLostWork(finished ? endingOf(turn) : died(), turn, background));
}

function emitExit(
  draft: Draft,
  { id: processId, phase }: RunningProcess,
  { code, error, signal }: Omit<Death, "subtype">,
): void {
  const expected = phase === "ending" || draft.state.turn?.stopping?.killed === true;
  const why = error === undefined ? {} : { error };
  emit(draft, { type: "process.exited", data: { processId, code, signal, expected, ...why } });
}

/** Ends a turn without its process. A lost turn that is run again has its receipt at the end of the second run. */
function endExited(draft: Draft, turn: Turn, ending: Ending): void {
  if (draft.policy.ephemeral) expireSession(draft, ending);
  else if (mayRerun(draft, turn, ending)) endTurn(draft, turn, ending);
  // The process was gone before it told that it was idle.
  else if (ending.limit && !turn.stopping) onRefused(draft, turn, ending.limit);
  else settleTurn(draft, turn, ending);
}

/** Claude Code saves its cost at exit, unless killed. */
function noteSavedCost(state: SessionState, signal: string | null): void {
  if (signal === "SIGKILL") state.reportedCostUsd = state.savedCostUsd;
  else state.savedCostUsd = state.reportedCostUsd;
}

/** Background work ends with its process. */
function endBackground(draft: Draft): void {
  const { state } = draft;
  if (state.background.length === 0) return;
  state.background = [];
  if (!state.closed) emit(draft, { type: "background.changed", data: { tasks: [] } });
}

/** True if a turn without its process is complete: stopped, or done with nothing left open. */
function isFinished(turn: Turn, { requests, background }: SessionState): boolean {
  if (turn.stopping) return true;
  return turn.last !== undefined && turn.awaiting.length === 0 && requests.length === 0 && background.length === 0;
}

/**
 * Takes over without the process of the dead owner, which is ended before anything else is done. Prompts with `endWithClient`
 * end too, because nothing is known of their client.
 */
export function onRecovered(draft: Draft, { environmentId, mayStart = false, why }: Omit<Recovered, "type">): void {
  if (environmentId !== undefined) noteEnvironment(draft.state, environmentId);
  dropClientBoundPrompts(draft);
  const { turn } = draft.state;
  if (turn && draft.state.waiting && !draft.policy.ephemeral) return recoverWait(draft);
  const wasOver = turn?.settling !== undefined;
  if (!mayStart || !startAgain(draft)) endLost(draft, why === undefined ? DIED : `${DIED} ${why}`);
  // The exit of its process closes a session that is not kept.
  if (turn && wasOver && draft.state.turn === turn) settleAgain(draft, turn);
}

/** Takes a waiting turn over. The refused request is still the last of the conversation, with or without its process. */
function recoverWait(draft: Draft): void {
  const { process } = draft.state;
  if (process.phase !== "none") {
    endLeftover(draft, process);
    emitExit(draft, process, { code: null, signal: null, error: DIED });
    draft.state.process = { phase: "none" };
  }
  waitAgain(draft);
}

const DIED = "The server that ran it has died.";

/** Maximum number of starts repeated for a turn, because the start itself may be what kills its owners. */
const MAX_AGAIN = 5;

/** Starts another process for the turn. False if the former process had a prompt, or may have gone on by itself. */
function startAgain(draft: Draft): boolean {
  const { policy, state } = draft;
  const { closed, process, turn } = state;
  if (process.phase !== "starting" || process.again === undefined || process.pid !== undefined) return false;
  const isWanted = turn && !turn.stopping && !closed && !policy.ephemeral && !turn.prompt?.limits?.endWithClient;
  if (!isWanted || (!process.waiting && (turn.rerun || process.again >= MAX_AGAIN))) return false;
  endLeftover(draft, process);
  emit(draft, { type: "notice", data: { kind: "owner.changed", message: STARTED_AGAIN } });
  restartProcess(draft, turn, { again: process.again, since: process.since });
  resend(draft, turn);
  return true;
}

const STARTED_AGAIN =
  "The server that ran this session has died before Claude Code was started for the turn. This server starts it.";

/**
 * Takes over together with the process. Sends the last messages of the dead owner again, because they may not have arrived; the
 * shim drops duplicates. A turn with `endWithClient` ends here.
 */
export function onAttached(draft: Draft): void {
  const { effects, state } = draft;
  const { process, turn } = state;
  if (process.phase === "none" || !process.shim || turn?.prompt?.limits?.endWithClient) return onRecovered(draft, {});
  dropClientBoundPrompts(draft);
  if (!state.closed) emit(draft, { type: "notice", data: { kind: "owner.changed", message: OWNER_CHANGED } });
  effects.push({ type: "reattach", processId: process.id });
  if (process.phase === "ending") effects.push({ type: "stop" });
  else if (turn) resend(draft, turn);
  if (turn) settleAgain(draft, turn);
  waitAgain(draft);
}

const OWNER_CHANGED =
  "The server that ran this session has died. Claude Code runs on, and this server has taken it over.";

function resend(draft: Draft, turn: Turn): void {
  const { stopping } = turn;
  if (turn.settling || turn.isHeldBack) return;
  if (stopping) {
    const isLeft = isEndedBySelf(turn);
    stopping.forMs = isLeft ? forMsAtStop(draft) : 0;
    // An interrupt does not end leftover subagents, and only the dead owner knew their ids.
    if (stopping.killed || !isLeft) draft.effects.push({ type: stopping.killed ? "kill" : "interrupt" });
    return;
  }
  if (turn.goneOn !== undefined) draft.effects.push({ type: "send-again", id: turn.goneOn });
  for (const prompt of promptsOf(draft.state)) {
    // On a rerun Claude Code goes on by itself, unless it was given the prompt.
    const isGiven = !turn.rerun || turn.given === true || prompt.promptId !== turn.prompt?.promptId;
    if (isGiven && turn.awaiting.includes(prompt.promptId)) push(draft, prompt, pushOptions(turn, prompt));
  }
}

function dropClientBoundPrompts(draft: Draft): void {
  for (const { limits, promptId } of draft.state.queue)
    if (limits?.endWithClient) dropPrompt(draft, promptId, CLIENT_GONE);
}

/** Ends the turn if lines were lost after the owner's death, because the log would tell less than what happened. */
function onLinesLost(draft: Draft, { lost }: SignalOf<"attached">): void {
  if (lost === 0) return;
  const what = lost === 1 ? "1 message" : `${String(lost)} messages`;
  const message = `The server that ran this session has died, and ${what} of Claude Code could not be kept for the next one.`;
  emit(draft, { type: "notice", data: { kind: "data_loss", message } });
  draft.effects.push({ type: "kill" });
  endLost(draft, message);
}

/** Ends the process, and its turn as lost. */
function endLost(draft: Draft, error: string): void {
  const { process, savedCostUsd, turn } = draft.state;
  if (process.phase === "none") return;
  endLeftover(draft, process);
  // Sets phase `live`, because a turn whose owner died is lost whatever the phase of its process.
  if (turn) draft.state.process = { ...process, phase: "live" };
  else holdQueue(draft);
  const isBound = turn?.prompt?.limits?.endWithClient === true;
  if (isBound) turn.pending = false;
  const policy = isBound ? { ...draft.policy, onLost: "report" as const } : draft.policy;
  onExited({ ...draft, policy }, { type: "exited", code: null, signal: null, error });
  // Nothing is known of the process saving its last cost, so `savedCostUsd` stays.
  draft.state.savedCostUsd = savedCostUsd;
}

function endLeftover({ effects }: Draft, process: RunningProcess): void {
  effects.push({ type: "end-leftover", processId: process.id, process: identityOf(process) });
}
