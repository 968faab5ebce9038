import { z } from "zod";
import { invalidArgument } from "../domain/error.ts";
import type { WaitUntil } from "../engine/api.ts";
import type { ToolCall, ToolLimits } from "./define.ts";
import { headline, presentEvent } from "./present/event.ts";
import type { SessionView } from "./session-view.ts";

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

export interface Wait {
  readonly cursor: number;
  readonly until: WaitUntil;
  readonly timeoutMs: number;
}

/** True when what was waited for is there; false when the time is over or the caller no longer waits. */
export async function waitFor(view: SessionView, { cursor, until, timeoutMs }: Wait, call: ToolCall): Promise<boolean> {
  const { progress } = call.client;
  let left = timeoutMs;
  for (let beat = 1; left > 0 && !call.signal.aborted; beat += 1) {
    const span = progress ? Math.min(left, BEAT_MS) : left;
    const { woke } = await view.wait(cursor, until, span);
    if (woke !== undefined) return true;
    left -= span;
    if (left > 0) progress?.({ progress: beat, message: await lastNews(view) });
  }
  return false;
}

async function lastNews(view: SessionView): Promise<string> {
  const { state } = await view.record();
  const recent = await view.read(Math.max(1, state.lastEventId - RECENT + 1), RECENT);
  const shown = recent.map(presentEvent).findLast((event) => event !== undefined);
  return shown ? headline(shown) : "Claude Code is at work";
}
