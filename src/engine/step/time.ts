import type { OpenRequest } from "../../domain/permission.ts";
import type { SessionState } from "../../domain/session.ts";
import type { Turn } from "../../domain/running-turn.ts";
import type { Draft } from "./draft.ts";
import { elapseWait } from "./waits.ts";

/**
 * Counts time in a session. The owner measures its time awake and passes it with each input; everything with a time limit
 * counts that time up or down. No clock that can be set decides anything here: times of day in the state are for people.
 */

/** Minimum jump of the system clock that corrects displayed times, ms. A smaller difference is imprecision. */
const SET_BY_MS = 1000;

/** Adds `ms` of time awake to the clocks of the state. */
export function elapse(state: SessionState, ms: number, at: number): void {
  const { requests, process, turn, waiting } = state;
  state.idleMs += ms;
  if (process.phase === "starting") process.startingMs = (process.startingMs ?? 0) + ms;
  if (turn) elapseTurn(turn, ms, requests.length > 0 || waitsForSlot(state) || waiting !== undefined);
  elapseWait(state, ms, at);
  for (const request of requests) elapseRequest(request, ms, at);
}

function waitsForSlot({ process }: SessionState): boolean {
  return process.phase === "starting" && process.waiting === true;
}

function elapseTurn(turn: Turn, ms: number, standsStill: boolean): void {
  const { clock } = turn;
  clock.lastedMs += ms;
  if (turn.stopping) turn.stopping.forMs += ms;
  if (turn.settling) turn.settling.forMs += ms;
  if (standsStill) return;
  clock.ranMs += ms;
  clock.silentMs = turn.settling ? 0 : clock.silentMs + ms;
}

function elapseRequest(request: OpenRequest, ms: number, at: number): void {
  const { clock } = request;
  clock.ageMs += ms;
  clock.approverMs += ms;
  clock.leftMs -= ms;
  clock.approverLeftMs -= ms;
  if (Math.abs(at + clock.leftMs - request.expiresAt) <= SET_BY_MS) return;
  request.expiresAt = at + clock.leftMs;
  request.approverDeadline = at + clock.approverLeftMs;
}

/** Minimum change of a displayed time, ms. Smaller differences come from reading the two clocks one after the other. */
const IMPRECISION_MS = 100;

/** Keeps `before` unless `now` differs by more than `IMPRECISION_MS`, so that displayed times do not jitter. */
export function shownTime(before: number, now: number): number {
  return Math.abs(now - before) <= IMPRECISION_MS ? before : now;
}

/** Restarts the idle clock. */
export function restartIdleClock({ at, state }: Draft): void {
  state.idleSince = at;
  state.idleMs = 0;
}

/** Returns the last line of the process that the state covers. */
export function lineOf({ process }: SessionState): number {
  return process.phase === "none" ? 0 : (process.line ?? 0);
}

/** True if readers without an event see no change of transcript id, waits, and times of open requests. */
export function looksUnchanged(before: SessionState, after: SessionState): boolean {
  if (before.transcriptId !== after.transcriptId || waitsForSlot(before) !== waitsForSlot(after)) return false;
  if (before.waiting?.until !== after.waiting?.until) return false;
  return after.requests.every(({ expiresAt }, index) => before.requests[index]?.expiresAt === expiresAt);
}
