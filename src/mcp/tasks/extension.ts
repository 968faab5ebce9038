import type { TaskOptions } from "../options.ts";

/** What the Tasks extension (SEP-2663) has to be known of before anybody uses it. */

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

const POLL_MS = 1_000;

/** Beside each task that is told. */
export function timesOf({ keptMs }: TaskOptions): { ttlMs: number; pollIntervalMs: number } {
  return { ttlMs: keptMs, pollIntervalMs: POLL_MS };
}
