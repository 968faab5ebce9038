import { z } from "zod";
import { AppError, invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { Scope } from "../../domain/principal.ts";
import { answer } from "../../engine/actions/answering.ts";
import { interruptPrompt } from "../../engine/actions/lifecycle.ts";
import { events } from "../../engine/actions/reading.ts";
import { requireScope } from "../../engine/actions/scope.ts";
import { requestKey } from "../../tools/elicitation/rounds.ts";
import { takeForm } from "../../tools/elicitation/user.ts";
import { entryOf } from "../../tools/audit.ts";
import type { Tool, ToolCall, ToolDeps } from "../../tools/define.ts";
import { actingCaller } from "../../tools/scope.ts";
import { readableSession } from "../../tools/readable-session.ts";
import { readTaskId } from "./task-id.ts";
import { isRunning, describeTask, type FoundTask, type Task } from "./task.ts";

/** Methods of a client on its task. */

export type TaskMethod = "tasks/get" | "tasks/update" | "tasks/cancel";

const METHOD_SCOPES: Readonly<Record<TaskMethod, Scope>> = {
  "tasks/get": events.scope,
  "tasks/update": answer.scope,
  "tasks/cancel": interruptPrompt.scope,
};

interface TaskDeps extends ToolDeps {
  /** Listed tools, which answer for their tasks. */
  readonly tools?: readonly Tool[];
}

const Params = z.object({ taskId: z.string() });

/** Runs a method and audits the outcome, as for a tool call. Throws `AppError`. */
export async function runTaskMethod(
  method: TaskMethod,
  params: unknown,
  call: ToolCall,
  all: TaskDeps,
): Promise<Task | undefined> {
  const deps = { ...all, engine: all.engine.forCaller(call) };
  const scope = METHOD_SCOPES[method];
  const note = (structured: JsonObject, isError: boolean) => {
    const about = { call, raw: {}, tool: method, scope };
    const entry = entryOf(about, { isError, structured });
    if (entry) deps.audit?.(entry);
  };
  try {
    requireScope(call, scope, method);
    const found = await findTask(params, call, deps);
    const task = await METHODS[method](found, call, deps);
    note({ sessionId: found.view.id }, false);
    return task;
  } catch (error) {
    note({ code: error instanceof AppError ? error.code : "INTERNAL" }, true);
    throw error;
  }
}

type Method = (found: FoundTask, call: ToolCall, deps: ToolDeps) => Promise<Task | undefined>;

const METHODS: Readonly<Record<TaskMethod, Method>> = {
  "tasks/get": async (found, call, deps) => describeTask(found, { call, deps }),
  "tasks/update": updateTask,
  "tasks/cancel": async ({ prompt, view }, call, deps) => {
    const { promptId } = prompt.data;
    await interruptPrompt.run(actingCaller(call, deps), { sessionId: view.id, promptId });
    return undefined;
  },
};

/** Takes answers to open requests. Ignores others, because another approver may have answered first. */
async function updateTask({ prompt, view }: FoundTask, call: ToolCall, deps: ToolDeps): Promise<undefined> {
  const { state } = await view.record();
  if (!isRunning(state, prompt)) return undefined;
  const unclear: string[] = [];
  for (const { deliveredAt = 0, filled, requestId } of state.requests) {
    const second = filled !== undefined;
    const key = requestKey(requestId, second);
    const filledIn = call.inputResponses[key];
    if (!filledIn) continue;
    const shown = { requestId, again: false, second, at: deliveredAt, last: false };
    const taken = await takeForm(view, shown, filledIn, { call, deps });
    if (taken === "unclear") unclear.push(key);
  }
  if (unclear.length === 0) return undefined;
  // Rejects, because the form stays open under its key: each key of a task belongs to one request.
  throw invalidArgument(`inputResponses.${unclear.join(", ")}`, "is not a complete answer to the form. Send it again.");
}

/** Finds the prompt of `taskId`. Reports a task of another principal as unknown. */
async function findTask(params: unknown, call: ToolCall, deps: TaskDeps): Promise<FoundTask> {
  const { taskId = "" } = Params.safeParse(params).data ?? {};
  const id = readTaskId(taskId);
  if (!id) throw noSuchTask();
  const view = readableSession(id.sessionId, call, deps);
  const [prompt] = await view.read(id.eventId, 1).catch(rethrowAsNoSuchTask);
  if (prompt?.type !== "prompt.queued" || prompt.id !== id.eventId || prompt.data.promptId !== id.promptId) {
    throw noSuchTask();
  }
  const tool = deps.tools?.find(({ name }) => name === prompt.data.via);
  return { taskId, view, prompt, answerTask: tool?.answerTask, shape: id.shape };
}

function rethrowAsNoSuchTask(error: unknown): never {
  throw error instanceof AppError && error.code === "SESSION_NOT_FOUND" ? noSuchTask() : error;
}

function noSuchTask(): AppError {
  return invalidArgument("taskId", "there is no such task. It may belong to another user, or its session was deleted.");
}
