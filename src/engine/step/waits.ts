import { createHash } from "node:crypto";
import { windowName } from "../../domain/plan.ts";
import type { QueuedPrompt, Turn } from "../../domain/running-turn.ts";
import type { Waiting } from "../../domain/waiting.ts";
import type { Policy } from "../policy/policy.ts";
import { emit, type Draft } from "./draft.ts";
import type { Ending } from "./endings.ts";
import { type HeldBack, limitText } from "./limits.ts";

/** Waits of turns at limits, as recorded in the state (`SessionState.waiting`). */

/** Interval of looks at a wait, ms, because clocks are set, machines sleep, and other processes report windows. */
const LOOK_MS = 60_000;

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
  elapseWait(state, draft.at);
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

/** Returns the time until the next look at a waiting turn, ms. */
export function waitLeftMs({ process, turn, waiting }: Draft["state"]): number | undefined {
  if (!waiting || !turn) return undefined;
  // Another event ends the wait.
  if (waiting.isSearching || process.phase === "ending") return LOOK_MS;
  return Math.min(waiting.leftMs ?? LOOK_MS, LOOK_MS);
}

/** Keeps `leftMs` in step with the time of day, because a reset is a time of day, whichever way the clock is set. */
export function elapseWait({ waiting }: Draft["state"], at: number): void {
  if (waiting?.until !== undefined) waiting.leftMs = Math.max(0, waiting.until - at);
}
