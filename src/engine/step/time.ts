import type { OpenRequest } from "../../domain/permission.ts";
import type { SessionState, Turn } from "../../domain/session.ts";
import type { Draft } from "./draft.ts";

/**
 * Time in a session. Its owner counts how long it has been awake and says so with each input; what has a time limit counts
 * that, or counts it down. No clock that can be set decides anything here: the times of day in the state are for people.
 */

/** The shown times are put right when the clock was set by more than this, ms; less is imprecision. */
const SET_BY_MS = 1000;

/** Lets time pass in the state. */
export function elapse(state: SessionState, ms: number, at: number): void {
  const { requests, process, turn } = state;
  state.idleMs += ms;
  if (process.phase === "starting") process.startingMs = (process.startingMs ?? 0) + ms;
  if (turn) elapseTurn(turn, ms, requests.length > 0 || waits(state));
  for (const request of requests) elapseRequest(request, ms, at);
}

function waits({ process }: SessionState): boolean {
  return process.phase === "starting" && process.waiting === true;
}

function elapseTurn(turn: Turn, ms: number, standsStill: boolean): void {
  const { clock } = turn;
  clock.lastedMs += ms;
  if (turn.stopping) turn.stopping.forMs += ms;
  if (standsStill) return;
  clock.ranMs += ms;
  clock.silentMs += ms;
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

/** The two clocks are read one after the other: a time that is shown already stays where it differs by no more, ms. */
const IMPRECISION_MS = 100;

/** A time of day as it is shown: a little imprecision is nothing that people want to see move. */
export function shownTime(before: number, now: number): number {
  return Math.abs(now - before) <= IMPRECISION_MS ? before : now;
}

/** Nothing has run from now on. */
export function beIdle({ at, state }: Draft): void {
  state.idleSince = at;
  state.idleMs = 0;
}

/**
 * Whether others read the same of a state without an event: the times of day of what is open, whose transcript it has, and whether
 * its process waits for a slot.
 */
export function showsTheSame(before: SessionState, after: SessionState): boolean {
  if (before.transcriptId !== after.transcriptId || waits(before) !== waits(after)) return false;
  return after.requests.every(({ expiresAt }, index) => before.requests[index]?.expiresAt === expiresAt);
}
