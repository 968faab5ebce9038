import { createHash } from "node:crypto";
import { windowName } from "../../domain/plan.ts";
import type { QueuedPrompt, Turn } from "../../domain/running-turn.ts";
import type { Waiting } from "../../domain/waiting.ts";
import type { Policy } from "../policy/policy.ts";
import { emit, type Draft } from "./draft.ts";
import type { Ending } from "./endings.ts";
import { type HeldBack, limitText } from "./limits.ts";

/** Waits of turns at limits, as recorded in the state (`SessionState.waiting`). */

/**
 * Returns the interval of looks at a wait, ms, a minute with the usual margin: clocks are set, machines sleep, and other
 * processes report windows.
 */
export function lookMs({ use: { marginMs } }: Pick<Policy, "use">): number {
  return 4 * marginMs;
}

/** True if a turn of `prompt` waits at limits. Turns that end with their client report. */
export function waitsAtLimits(
  { onLimit, use }: Pick<Policy, "onLimit" | "use">,
  prompt: Pick<QueuedPrompt, "limits"> | undefined,
): boolean {
  return (onLimit ?? use.onLimit) === "wait" && prompt?.limits?.endWithClient !== true;
}

/** True if the turn of `prompt` may wait for the end of `limit`. */
export function mayHoldBack(
  { at, policy }: { readonly at: number; readonly policy: Pick<Policy, "onLimit" | "use"> },
  prompt: Pick<QueuedPrompt, "limits">,
  limit: HeldBack,
): boolean {
  return waitsAtLimits(policy, prompt) && limit.until - at <= policy.use.waitMaxMs;
}

/** Returns the time from the end of a limit to the going on, ms, different for each turn. Background sessions go on last. */
export function marginOf({ priority, use: { marginMs } }: Policy, id: string): number {
  const fraction = Number.parseInt(createHash("sha256").update(id).digest("hex").slice(0, 4), 16) / 0xffff;
  return marginMs * ((priority === "background" ? 4 : 1) + fraction);
}

/** Records a wait. A change of its end alone is no news. */
export function beginWait(draft: Draft, waiting: Waiting): void {
  const { state } = draft;
  const isKnown = state.waiting?.kind === waiting.kind;
  state.waiting = { ...waiting };
  lookLater(draft);
  if (isKnown) return;
  const data = { kind: "waiting" as const, message: waitText(waiting), details: { ...waiting } };
  emit(draft, { type: "notice", data });
}

function waitText({ kind, until = 0, window = "" }: Waiting): string {
  if (kind === "environment")
    return "The turn waits for a client of the session's configuration and payer, whose environment Claude Code needs.";
  if (kind !== "usage_limit") return `${limitText({ kind, window, until })} The turn waits, and starts by itself.`;
  const when = new Date(until).toISOString();
  return `The API refuses requests of this account (${windowName(window)}). The turn waits, and goes on by itself at ${when}.`;
}

/** Holds a turn back that has just begun. */
export function holdBack(draft: Draft, turn: Turn, limit: HeldBack): void {
  turn.isHeldBack = true;
  beginWait(draft, { ...heldWait(draft, turn, limit), since: draft.at });
}

export function heldWait(
  { policy }: Pick<Draft, "policy">,
  { id }: Pick<Turn, "id">,
  { until, ...limit }: HeldBack,
): Omit<Waiting, "since"> {
  return { ...limit, until: until + marginOf(policy, id) };
}

/** Returns the ending of a turn that a limit keeps from starting. */
export function heldEnding(limit: HeldBack): Ending {
  const message = `${limitText(limit)} The prompt was not given to Claude Code.`;
  return { outcome: "failed", errorSubtype: limit.kind, category: "limit", message };
}

/** Returns the time awake until the next look at a waiting turn, ms. */
export function waitLeftMs({ turn, waiting }: Draft["state"]): number | undefined {
  return turn && waiting ? (waiting.leftMs ?? 0) : undefined;
}

/** Puts the next look off. */
export function lookLater({ at, policy, state }: Pick<Draft, "at" | "policy" | "state">): void {
  if (!state.waiting) return;
  state.waiting.leftMs = lookMs(policy);
  elapseWait(state, 0, at);
}

/** Counts `leftMs` down, and to 0 at the end of the wait, a time of day, whichever way the clock is set. */
export function elapseWait({ process, waiting }: Draft["state"], ms: number, at: number): void {
  if (waiting?.leftMs === undefined) return;
  // Another event ends the wait.
  const isElsewhere = waiting.isSearching === true || process.phase === "ending";
  const { until = Infinity } = isElsewhere ? {} : waiting;
  waiting.leftMs = Math.max(0, Math.min(until - at, waiting.leftMs - ms));
}
