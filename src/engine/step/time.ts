import type { AskClock, OpenAsk } from "../../domain/permission.ts";
import type { SessionState, Turn, TurnClock } from "../../domain/session.ts";
import type { Draft } from "./draft.ts";

/**
 * Time in a session. Its owner counts how long it has been awake and says so with each input; what has a time limit counts
 * that, or counts it down. No clock that can be set decides anything here: the times of day in the state are for people.
 */

/** The shown times are put right when the clock was set by more than this, ms; less is imprecision. */
const SET_BY_MS = 1000;

/** Lets time pass in the state. What an older server wrote without these counts gets them. */
export function elapse(state: SessionState, ms: number, at: number): void {
  const { asks, process, turn } = state;
  state.idleMs = (state.idleMs ?? 0) + ms;
  const waits = process.phase === "starting" && process.waiting === true;
  if (process.phase === "starting") process.startingMs = (process.startingMs ?? 0) + ms;
  if (turn) elapseTurn(turn, ms, asks.length > 0 || waits);
  for (const ask of asks) elapseAsk(ask, ms, at);
}

function elapseTurn(turn: Turn, ms: number, standsStill: boolean): void {
  const clock = clockOf(turn);
  clock.lastedMs += ms;
  if (turn.stopping) turn.stopping.forMs = (turn.stopping.forMs ?? 0) + ms;
  if (standsStill) return;
  clock.ranMs += ms;
  clock.silentMs += ms;
}

function elapseAsk(ask: OpenAsk, ms: number, at: number): void {
  ask.clock ??= readOff(ask, at);
  const { clock } = ask;
  clock.ageMs += ms;
  clock.rungMs += ms;
  clock.leftMs -= ms;
  clock.rungLeftMs -= ms;
  if (Math.abs(at + clock.leftMs - ask.expiresAt) <= SET_BY_MS) return;
  ask.expiresAt = at + clock.leftMs;
  ask.rungEndsAt = at + clock.rungLeftMs;
}

/** The two clocks are read one after the other: a time that is shown already stays where it differs by no more, ms. */
const IMPRECISION_MS = 100;

/** A time of day as it is shown: a little imprecision is nothing that people want to see move. */
export function shownTime(before: number | undefined, now: number): number {
  return before !== undefined && Math.abs(now - before) <= IMPRECISION_MS ? before : now;
}

function readOff(
  { createdAt, expiresAt, rungEndsAt = expiresAt, rungSince = createdAt }: OpenAsk,
  at: number,
): AskClock {
  const upTo = (time: number) => Math.max(0, at - time);
  const leftMs = Math.max(0, expiresAt - at);
  return { ageMs: upTo(createdAt), leftMs, rungMs: upTo(rungSince), rungLeftMs: Math.max(0, rungEndsAt - at) };
}

export function clockOf(turn: Turn): TurnClock {
  turn.clock ??= { lastedMs: 0, ranMs: 0, silentMs: 0 };
  return turn.clock;
}

export function askClockOf(ask: OpenAsk): AskClock {
  ask.clock ??= { ageMs: 0, leftMs: 0, rungMs: 0, rungLeftMs: 0 };
  return ask.clock;
}

/** Nothing has run from now on. */
export function beIdle({ at, state }: Draft): void {
  state.idleSince = at;
  state.idleMs = 0;
}

/** Whether others read the same of a state without an event: the times of day of what is open, and whose transcript it has. */
export function showsTheSame(before: SessionState, after: SessionState): boolean {
  if (before.transcriptId !== after.transcriptId) return false;
  return after.asks.every(({ expiresAt }, index) => before.asks[index]?.expiresAt === expiresAt);
}
