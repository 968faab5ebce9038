import type { Query } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import { setTimeout as sleep } from "node:timers/promises";
import type { ControlRequest } from "../../domain/control.ts";
import { AppError, invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { PlanReport } from "../../domain/plan.ts";
import { roundUsd } from "../../domain/usage.ts";
import type { AgentSignal } from "../../engine/ports.ts";
import { readUsageWindows } from "../plan-reader.ts";
import { exactModelUsage } from "../results.ts";

/** Missing in the types of the SDK. */
interface Untyped {
  getTaskOutput?: (taskId: string) => Promise<unknown>;
}

interface Receivers {
  /** Removes secrets from a text. */
  readonly mask: (text: string) => string;
  /** Gets windows of the plan, if the answer has any, before the answer is given. */
  readonly onPlan: (report: PlanReport) => void;
}

/** Sends a control request to a running Claude Code. Rejects with an `AppError` with Claude Code's reason. */
export async function sendControl(
  query: Query,
  request: ControlRequest,
  { mask, onPlan }: Receivers,
): Promise<JsonObject> {
  switch (request.do) {
    case "configure":
      return configure(query, request);
    case "stop-task":
      // Also resolves for an unknown id: then there is nothing to stop.
      await query.stopTask(request.taskId);
      return { taskId: request.taskId };
    case "task-output":
      return taskOutput(query, request.taskId, mask);
    case "suspend":
      // The engine answers by ending the process.
      return {};
    case "usage":
      return usage(query, onPlan);
    case "rewind":
      return rewind(query, request);
  }
}

type RequestTo<D extends ControlRequest["do"]> = Extract<ControlRequest, { do: D }>;

async function configure(query: Query, { model, permissionMode }: RequestTo<"configure">): Promise<JsonObject> {
  if (model !== undefined) {
    await query.setModel(model).catch((error: unknown) => {
      throw invalidArgument("model", `Claude Code rejected ${model}: ${messageOf(error)}`);
    });
  }
  if (permissionMode !== undefined) {
    const answer = await query.setPermissionMode(permissionMode).catch((error: unknown) => {
      throw invalidArgument("permissionMode", `Claude Code rejected ${permissionMode}: ${messageOf(error)}`);
    });
    // `undefined` before Claude Code 2.1.332.
    const { mode = permissionMode } = answer ?? {};
    return { permissionMode: mode };
  }
  return {};
}

const TaskOutput = z.looseObject({ output: z.string(), total_bytes: z.number(), truncated: z.boolean() });

async function taskOutput(query: Query & Untyped, taskId: string, mask: (text: string) => string): Promise<JsonObject> {
  const answer = TaskOutput.safeParse(await query.getTaskOutput?.(taskId).catch(() => undefined));
  if (!answer.success) throw invalidArgument("taskId", `Claude Code has no output for task ${taskId}.`);
  const { output, total_bytes: totalBytes, truncated } = answer.data;
  // Masked, because the answer goes through the store if another server has asked.
  return { taskId, output: mask(output), totalBytes, truncated };
}

async function usage(query: Query, onPlan: Receivers["onPlan"]): Promise<JsonObject> {
  const { categories, maxTokens, model, percentage, totalTokens } = await query.getContextUsage({ detail: "summary" });
  const answer = await query.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET({ skipBehaviors: true });
  const { session } = answer;
  const windows = readUsageWindows(answer);
  if (windows.length > 0) onPlan({ windows, isUsingOverage: false });
  return {
    context: {
      model,
      totalTokens,
      maxTokens,
      percentage,
      categories: categories.map(({ name, tokens }) => ({ name, tokens })),
    },
    costUsd: roundUsd(session.total_cost_usd),
    modelUsage: exactModelUsage(session.model_usage),
    linesAdded: session.total_lines_added,
    linesRemoved: session.total_lines_removed,
  };
}

async function rewind(query: Query, { dryRun, promptId }: RequestTo<"rewind">): Promise<JsonObject> {
  const answer = await query.rewindFiles(promptId, { dryRun }).catch((error: unknown) => {
    throw new AppError("INVALID_ARGUMENT", `Files cannot be restored: ${messageOf(error)}`);
  });
  const { canRewind, error, ...rest } = answer;
  if (!canRewind) throw new AppError("INVALID_ARGUMENT", `Files cannot be restored: ${error ?? "no checkpoint"}`);
  return { ...rest, dryRun };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** True if `promise` resolves within `ms`. Rejects if `promise` rejects. */
export async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(ms, false, { signal: timer.signal, ref: false }).catch(() => false);
  const inTime = await Promise.race([promise.then(() => true), late]);
  timer.abort();
  return inTime;
}

/** Interval between `alive` signals, ms. Far below 1 s, the shortest limit for a silent turn in tests. */
const ALIVE_MS = 100;

/** Drops repeated `alive` signals, because each signal is a step of the session, and a streamed text yields thousands. */
export class AliveThrottle {
  #at = Number.NEGATIVE_INFINITY;

  drops({ type }: AgentSignal): boolean {
    const isRepeated = type === "alive" && performance.now() < this.#at + ALIVE_MS;
    if (type === "alive" && !isRepeated) this.#at = performance.now();
    return isRepeated;
  }
}

/** Adds the last line on `stderr` to `failure`. */
export function withLastWords(failure: string | undefined, stderr: string): string | undefined {
  const lastWords = stderr.trim().split("\n").at(-1);
  return failure !== undefined && lastWords ? `${failure} (${lastWords.slice(0, 300)})` : failure;
}
