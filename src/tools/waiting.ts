import { z } from "zod";
import { invalidArgument } from "../domain/error.ts";
import type { ToolCall, ToolLimits } from "./define.ts";
import { headline, presentEvent } from "./present/event.ts";
import type { SessionView, Wait } from "./session-view.ts";

/** Calls wait on the server, so that nobody has to poll: a model cannot sleep, and every look costs it tokens. */

/** A client may count silence against its own time limit: while a call blocks, it hears something this often. */
const BEAT_MS = 5_000;
/** Events looked at for a line of progress. */
const RECENT = 8;

export const WaitMs = z.int().min(0);

/** The time to wait, or INVALID_ARGUMENT when it is over the operator's limit. */
export function waitWithin(asked: number | undefined, usual: number, { maxWaitMs }: ToolLimits): number {
  const most = String(maxWaitMs);
  if (asked !== undefined && asked > maxWaitMs) {
    throw invalidArgument(
      "waitMs",
      `must be at most ${most}, not ${String(asked)}: the limit of this server (--max-wait-ms).`,
    );
  }
  return asked ?? Math.min(usual, maxWaitMs);
}

/** The session in which there is what was waited for; undefined when the time is over or the caller no longer waits. */
export async function waitFor(view: SessionView, wait: Wait, call: ToolCall): Promise<string | undefined> {
  const { progress } = call.client;
  let left = wait.timeoutMs;
  for (let beat = 1; left > 0 && !call.signal.aborted; beat += 1) {
    const span = progress ? Math.min(left, BEAT_MS) : left;
    const { woke } = await view.wait({ ...wait, timeoutMs: span });
    if (woke !== undefined) return woke;
    left -= span;
    if (left > 0) progress?.({ progress: beat, message: await lastNews(view) });
  }
  return undefined;
}

async function lastNews(view: SessionView): Promise<string> {
  const { state } = await view.record();
  const recent = await view.read(Math.max(1, state.lastEventId - RECENT + 1), RECENT);
  const shown = recent.map((event) => presentEvent(event, "delta_compact")).findLast((event) => event !== undefined);
  return shown ? headline(shown) : "Claude Code is at work";
}
