import type { UnattendedWork } from "../../domain/attendance.ts";
import type { SessionState } from "../../domain/session.ts";
import type { Policy } from "../policy/policy.ts";
import { noteUnattended, type Draft } from "./draft.ts";
import { holdQueue } from "./turn.ts";

/**
 * Handles sessions that no client waits on, reads or follows, on a server that goes on without clients. After `afterMs` such a
 * session is unattended and its work has bounds of its own. Everything begins anew once a client attends.
 */

export function attend({ policy: { unattended }, state }: Draft): void {
  if (unattended) state.attendance = { leftMs: unattended.afterMs };
  else delete state.attendance;
}

/** Counts `ms` of time awake. */
export function elapseAttendance(state: SessionState, ms: number, { unattended }: Policy): void {
  if (!unattended) return;
  const attendance = (state.attendance ??= { leftMs: unattended.afterMs });
  attendance.leftMs = Math.max(0, attendance.leftMs - ms);
  if (attendance.work && isRunning(state)) attendance.work.leftMs -= ms;
}

/** True if a turn runs, and waits for no decision, slot or limit. */
function isRunning({ process, requests, turn, waiting }: SessionState): boolean {
  return (
    turn !== null && !waiting && requests.length === 0 && !(process.phase === "starting" && process.waiting === true)
  );
}

/** Returns the next deadline: the session becomes unattended, or its time for unattended work is over. */
export function unattendedDue(
  state: SessionState,
  { unattended }: Policy,
): { leftMs: number; kind: "unattended" | "unattended-over" } | undefined {
  const { attendance, turn } = state;
  if (!unattended || !attendance || !turn || turn.stopping) return undefined;
  const { leftMs, work } = attendance;
  if (!work) return { leftMs, kind: "unattended" };
  return work.over !== undefined || !isRunning(state) ? undefined : { leftMs: work.leftMs, kind: "unattended-over" };
}

export function beginUnattended(draft: Draft): void {
  const { policy, state } = draft;
  const { attendance } = state;
  if (!policy.unattended || !attendance || attendance.work) return;
  const { afterMs, maxMs, maxUsd } = policy.unattended;
  attendance.work = { leftMs: maxMs, leftUsd: maxUsd };
  const bounds = `for at most ${durationText(maxMs)} of running turns and $${String(maxUsd)} (--unattended-max-usd)`;
  noteUnattended(
    draft,
    `No client has followed this session for ${durationText(afterMs)}: it goes on unattended, ${bounds}.`,
  );
}

/** Notes a passed bound of unattended work. The turn is interrupted at its next tool call, a boundary without loss. */
export function endUnattended(draft: Draft, over: NonNullable<UnattendedWork["over"]>): void {
  const work = draft.state.attendance?.work;
  if (!work || work.over !== undefined) return;
  work.over = over;
  holdQueue(draft);
  const { maxMs = 0 } = draft.policy.unattended ?? {};
  const bound = over === "time" ? `${durationText(maxMs)} of running turns` : "--unattended-max-usd";
  const effect = "Waiting prompts are held, and the turn is interrupted at its next tool call.";
  noteUnattended(draft, `The session has passed a bound for unattended work (${bound}). ${effect}`);
}

export function isUnattendedOver({ state }: Draft): boolean {
  return state.attendance?.work?.over !== undefined;
}

/** Charges reported cost to unattended work. A smaller total is a new count, as in `newCost`. */
export function countCost(draft: Draft, costUsdTotal: number): void {
  const { policy, state } = draft;
  if (!policy.unattended) return;
  const { attendance, reportedCostUsd, savedCostUsd, toldCostUsd = reportedCostUsd } = state;
  const base = [toldCostUsd, reportedCostUsd, savedCostUsd, 0].find((total) => total <= costUsdTotal) ?? 0;
  state.toldCostUsd = costUsdTotal;
  if (!attendance?.work) return;
  attendance.work.leftUsd -= costUsdTotal - base;
  if (attendance.work.leftUsd <= 0) endUnattended(draft, "cost");
}

const UNITS = [
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** Formats `ms` in the largest unit that divides it. */
function durationText(ms: number): string {
  const [unit, size] = UNITS.find(([, each]) => ms >= each && ms % each === 0) ?? ["ms", 1];
  return `${String(ms / size)} ${unit}`;
}
