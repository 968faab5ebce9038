import type { TaskOptions } from "../server-options.ts";

/** The part of the Tasks extension (SEP-2663) that is needed before a client uses it. */

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/**
 * Claude Code shows its model of a task that has begun this alone, and where it is not there nothing but the task's id,
 * with which no tool can be called.
 */
export function forModel(modelImmediateResponse: string): Record<string, unknown> {
  return { "com.anthropic/agent-task": { modelImmediateResponse } };
}

const POLL_MS = 1_000;

/** Beside each task that is told. */
export function timesOf({ keptMs }: TaskOptions): { ttlMs: number; pollIntervalMs: number } {
  return { ttlMs: keptMs, pollIntervalMs: POLL_MS };
}
