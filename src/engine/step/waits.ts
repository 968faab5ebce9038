import { createHash } from "node:crypto";
import { windowName } from "../../domain/plan.ts";
import type { QueuedPrompt, Turn } from "../../domain/running-turn.ts";
import type { Waiting } from "../../domain/waiting.ts";
import type { Policy } from "../policy/policy.ts";
import { emit, type Draft } from "./draft.ts";
import type { Ending } from "./endings.ts";
import { type HeldBack, limitText } from "./limits.ts";
import { endProcess } from "./starting.ts";

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
  // A prompt for another node waits whatever the operator says of limits: it was accepted for the session, not for a node.
  if (limit.kind === "workspace") return prompt.limits?.endWithClient !== true;
  return waitsAtLimits(policy, prompt) && limit.until - at <= policy.use.waitMaxMs;
}

/** Returns the time from the end of a limit to the going on, ms, different for each turn. Background sessions go on last. */
export function marginOf({ priority, use: { marginMs } }: Policy, id: string): number {
  const fraction = Number.parseInt(createHash("sha256").update(id).digest("hex").slice(0, 4), 16) / 0xffff;
  return marginMs * ((priority === "background" ? 4 : 1) + fraction);
}

/** Records a wait. A change of its end alone is no news. `text`: sentence for people. */
export function beginWait(draft: Draft, waiting: Waiting, text = waitText(waiting)): void {
  const { state } = draft;
  const isKnown = state.waiting?.kind === waiting.kind;
  state.waiting = { ...waiting };
  lookLater(draft);
  if (isKnown) return;
  const data = { kind: "waiting" as const, message: text, details: { ...waiting } };
  emit(draft, { type: "notice", data });
}

function waitText({ kind, until = 0, window = "" }: Waiting): string {
  if (kind === "environment")
    return "The turn waits for a client of the session's configuration and payer, whose environment Claude Code needs.";
  if (kind === "workspace") return "The turn waits for a node that has the folder of the session.";
  if (kind !== "usage_limit") return `${limitText({ kind, window, until })} ${BY_ITSELF}`;
  const when = new Date(until).toISOString();
  return `The API refuses requests of this account (${windowName(window)}). The turn waits, and goes on by itself at ${when}.`;
}

const BY_ITSELF = "The turn waits, and starts by itself.";

/** Holds a turn back that has just begun. */
export function holdBack(draft: Draft, turn: Turn, limit: HeldBack): void {
  turn.isHeldBack = true;
  waitHeld(draft, turn, limit);
}

/** Lets a turn that is held back wait for the end of `limit`, since now or since before. */
export function waitHeld(draft: Draft, { id }: Pick<Turn, "id">, limit: HeldBack): void {
  const { at, policy, state } = draft;
  const { since = at } = state.waiting ?? {};
  if (limit.kind === "workspace") waitAway(draft, limit.away, since);
  else beginWait(draft, { ...limit, until: limit.until + marginOf(policy, id), since });
}

/** Lets a turn wait for another node, whose owner starts a process there. */
export function waitAway(draft: Draft, away: string, since: number): void {
  beginWait(draft, { kind: "workspace", since }, `${away} ${BY_ITSELF}`);
  if (draft.state.background.length === 0) endProcess(draft);
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
