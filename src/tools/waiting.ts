import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { invalidArgument } from "../domain/error.ts";
import { statusOf, waitingOf, type SessionState } from "../domain/session.ts";
import { waitingField } from "../domain/standstill.ts";
import type { ToolLimits } from "./arguments/wait-limits.ts";
import type { ToolCall } from "./define.ts";
import { headline, presentEvent } from "../view/event.ts";
import type { ReadableSession, Wait } from "./readable-session.ts";

/** Calls wait on the server so that callers need not poll: a model cannot sleep, and every poll costs tokens. */

/** Interval of keepalive messages during a wait, ms. A client may count silence against its own time limit. */
const KEEPALIVE_MS = 5_000;
/** Minimum interval between two messages, ms. Only the last event of an interval is reported. */
const MIN_INTERVAL_MS = 500;
/** Number of events to search for a line of progress. */
const MAX_RECENT = 8;

/** Recommended time until the next poll, ms; none if nothing runs in the session. Waits at limits last for hours. */
export function pollInterval(state: SessionState): { pollInterval?: number } {
  const status = statusOf(state);
  if (status !== "running") return status === "waiting_permission" ? { pollInterval: 1_000 } : {};
  const { kind = "slot" } = waitingOf(state) ?? {};
  return { pollInterval: kind === "slot" ? 3_000 : 60_000 };
}

/** Shortest wait for a slot that answers about a turn show, ms: every start of a process waits for a moment. */
const SHORT_WAIT_MS = 1_000;

/** Returns the field `waiting` of an answer about a turn. */
export function turnWait(state: SessionState, now: number): ReturnType<typeof waitingField> {
  const { process, waiting } = state;
  const isShort = process.phase === "starting" && now - process.since < SHORT_WAIT_MS;
  return waiting || !isShort ? waitingField(state) : {};
}

export const WaitMs = z.int().min(0);

/** Returns the time to wait, ms. Throws INVALID_ARGUMENT above the operator's limit. */
export function waitWithin(
  asked: number | undefined,
  usual: number,
  { maxWaitMs, waitsByDefault = false }: ToolLimits,
): number {
  const most = String(maxWaitMs);
  if (asked !== undefined && asked > maxWaitMs) {
    throw invalidArgument(
      "waitMs",
      `must be at most ${most}, not ${String(asked)}: the limit of this server (--max-wait-ms).`,
    );
  }
  return asked ?? (waitsByDefault ? maxWaitMs : Math.min(usual, maxWaitMs));
}

export interface Target {
  readonly view: ReadableSession;
  readonly cursor: number;
}

/** `maxMs` bounds the whole wait: time spent installing Claude Code does not count for `timeoutMs`. */
type WaitRequest = Pick<Wait, "timeoutMs" | "until"> & { readonly maxMs: number };

/** Resolves with the id of the session with news; `undefined` after the time limit or if the caller no longer waits. */
export async function waitFor(
  targets: readonly [Target, ...Target[]],
  wait: WaitRequest,
  call: ToolCall,
): Promise<string | undefined> {
  if (wait.timeoutMs <= 0 || call.signal.aborted) return undefined;
  const { news, progress } = call.client;
  const waited = waitInstalled(targets, wait, call.signal);
  // Without `news` and `progress` a call costs one wait and no reads.
  if (!news && !progress) return waited;
  const over = new AbortController();
  // A failure to report news must not end the wait.
  const reporting = reportNews(targets, call.client, over.signal).catch(() => undefined);
  try {
    return await waited;
  } finally {
    over.abort();
    await reporting;
  }
}

/** Polls while a process starts, because an installation does not count for `timeoutMs`. Starts without one are short. */
async function waitInstalled(
  targets: readonly [Target, ...Target[]],
  { maxMs, timeoutMs, until }: WaitRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  const latest = performance.now() + Math.max(maxMs, timeoutMs);
  for (let left = timeoutMs; ;) {
    const from = performance.now();
    const starts = await readStartPhase(targets);
    if (starts === "none") return left > 0 ? waitAll(targets, { until, timeoutMs: left }) : undefined;
    const most = Math.ceil(latest - from);
    const slice = Math.min(START_POLL_MS, starts === "installing" ? most : left);
    if (slice <= 0) return undefined;
    const woke = await waitAll(targets, { until, timeoutMs: slice });
    if (woke !== undefined || signal.aborted) return woke;
    if (starts !== "installing") left = Math.ceil(left - (performance.now() - from));
  }
}

/** Interval of polls during a start, ms. */
const START_POLL_MS = 1_000;

async function readStartPhase(targets: readonly Target[]): Promise<"installing" | "starting" | "none"> {
  const records = await Promise.all(targets.map(async ({ view }) => view.record()));
  const starting = records.flatMap(({ state: { process } }) => (process.phase === "starting" ? [process] : []));
  if (starting.some(({ installing }) => installing)) return "installing";
  return starting.length > 0 ? "starting" : "none";
}

async function waitAll(
  [first, ...rest]: readonly [Target, ...Target[]],
  wait: Pick<Wait, "signal" | "timeoutMs" | "until">,
): Promise<string | undefined> {
  const others = rest.map(({ cursor, view }) => ({ sessionId: view.id, cursor }));
  const { woke } = await first.view.wait({ ...wait, cursor: first.cursor, others });
  return woke;
}

/** Reports news during a wait until `signal` aborts; sends a keepalive if there are none. */
async function reportNews(
  targets: readonly [Target, ...Target[]],
  { news, progress }: ToolCall["client"],
  signal: AbortSignal,
): Promise<void> {
  // A function, so that TypeScript does not narrow `signal.aborted` to `false`.
  const ended = (): boolean => signal.aborted;
  const next = new Map(targets.map(({ cursor, view }) => [view.id, cursor]));
  let last = "Claude Code is at work";
  for (let woke: string | undefined = targets[0].view.id; !ended();) {
    const target = targets.find(({ view }) => view.id === woke);
    const found = target && (await readNews(target.view, next.get(target.view.id) ?? 1));
    if (ended()) return;
    if (target && found) next.set(target.view.id, found.end);
    if (target && found?.line !== undefined) {
      last = targets.length > 1 ? `${target.view.id.slice(0, 8)}: ${found.line}` : found.line;
      news?.(last);
    }
    // Without news, `progress` repeats the last line: a client may time out on silence.
    if (!found || found.line !== undefined) progress?.(last);
    await pause(MIN_INTERVAL_MS, signal);
    woke = await waitAll(withCursors(targets, next), { until: "event", timeoutMs: KEEPALIVE_MS, signal });
  }
}

function withCursors(
  [first, ...rest]: readonly [Target, ...Target[]],
  next: ReadonlyMap<string, number>,
): readonly [Target, ...Target[]] {
  const moved = ({ cursor, view }: Target) => ({ view, cursor: next.get(view.id) ?? cursor });
  return [moved(first), ...rest.map(moved)];
}

/** Returns the newest event that fits on a line, and the cursor behind it. */
export async function readNews(
  view: ReadableSession,
  cursor: number,
): Promise<{ end: number; line: string | undefined }> {
  const { state } = await view.record();
  const recent = await view.read(Math.max(cursor, state.lastEventId - MAX_RECENT + 1), MAX_RECENT);
  const shown = recent.map((event) => presentEvent(event, "delta_compact")).findLast((event) => event !== undefined);
  return { end: Math.max(cursor, (recent.at(-1)?.id ?? 0) + 1), line: shown && headline(shown) };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
