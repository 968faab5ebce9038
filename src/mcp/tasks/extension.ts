import type { TaskOptions } from "../server-options.ts";

/** Constants of the Tasks extension (SEP-2663) that are needed before a client uses it. */

/**
 * Text about a new task for the model in Claude Code. Without the text, Claude Code shows the id of the task alone, and no tool
 * accepts that id.
 */
export function metaForModel(modelImmediateResponse: string): Record<string, unknown> {
  return { "com.anthropic/agent-task": { modelImmediateResponse } };
}

const POLL_MS = 1_000;

/** Times that accompany each task. */
export function taskTimes({ keptMs }: TaskOptions): { ttlMs: number; pollIntervalMs: number } {
  return { ttlMs: keptMs, pollIntervalMs: POLL_MS };
}
