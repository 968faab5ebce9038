import { z } from "zod";
import type { ControlRequest } from "../../domain/control.ts";
import { AppError, invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import { ModelName } from "../../domain/options.ts";
import { PermissionMode } from "../../domain/permission.ts";
import { waitingOf } from "../../domain/session.ts";
import { waitingText } from "../../domain/standstill.ts";
import { defineAction, type ActingCaller } from "./action.ts";
import { PromptId, SessionId, TaskId } from "./input.ts";

/** Requests to Claude Code itself, carried out at once if a process runs, in this or another server. */

const fields = { sessionId: SessionId };

async function ask({ by, caller, engine }: ActingCaller, sessionId: string, request: ControlRequest) {
  return engine.control(caller, sessionId, request, by);
}

/** Takes effect with the next request to the model. */
export const setModel = defineAction({
  name: "set_model",
  scope: "run",
  fields: { ...fields, model: ModelName },
  run: async (acting, { model, sessionId }) => {
    await ask(acting, sessionId, { do: "configure", model });
  },
});

export const setPermissionMode = defineAction({
  name: "set_permission_mode",
  scope: "run",
  fields: { ...fields, permissionMode: PermissionMode },
  run: async (acting, { permissionMode, sessionId }) => {
    await ask(acting, sessionId, { do: "configure", permissionMode });
  },
});

/** Stops a background task. */
export const stopTask = defineAction({
  name: "stop_task",
  scope: "run",
  fields: { ...fields, taskId: TaskId },
  run: async (acting, { sessionId, taskId }) => {
    const { state } = await acting.engine.get(acting.caller.principal, sessionId);
    // Claude Code gives no error for an unknown task.
    if (!state.background.some((task) => task.id === taskId)) {
      const running = state.background.map((task) => task.id).join(", ");
      throw invalidArgument("taskId", `no task ${taskId} is running. Running: ${running === "" ? "none" : running}.`);
    }
    await ask(acting, sessionId, { do: "stop-task", taskId });
  },
});

export const taskOutput = defineAction({
  name: "task_output",
  scope: "read",
  fields: { ...fields, taskId: TaskId },
  run: async (acting, { sessionId, taskId }) => ask(acting, sessionId, { do: "task-output", taskId }),
});

/**
 * Returns what Claude Code says of the context and the cost, and the use of account and budgets. `unasked`: reason why no
 * process was asked.
 */
export const usage = defineAction({
  name: "usage",
  scope: "read",
  fields,
  run: async (acting, { sessionId }) => {
    const { caller, engine } = acting;
    const asked = await askUsage(acting, sessionId);
    // Read afterwards, because Claude Code's answer may have reported windows.
    const use = await engine.use(caller.principal, sessionId);
    const { spec, state } = await engine.get(caller.principal, sessionId);
    return { ...asked, use, spec, state };
  },
});

interface AskedUsage {
  readonly told?: JsonObject;
  readonly unasked?: string;
}

/** Starts a process if none runs, except in a session that waits or has ended. */
async function askUsage(acting: ActingCaller, sessionId: string): Promise<AskedUsage> {
  const { state } = await acting.engine.get(acting.caller.principal, sessionId);
  if (state.closed) return { unasked: `The session was ${state.closed.reason}.` };
  if (state.process.phase !== "live" && waitingOf(state)) return { unasked: `The session ${waitingText(state)}.` };
  try {
    return { told: await ask(acting, sessionId, { do: "usage" }) };
  } catch (error) {
    if (!(error instanceof AppError) || error.code === "SESSION_NOT_FOUND") throw error;
    return { unasked: error.message };
  }
}

/** Restores files to their state before a prompt, by default the last. `dryRun` only reports the changes. */
export const rewind = defineAction({
  name: "rewind",
  scope: "run",
  fields: { ...fields, promptId: PromptId.exactOptional(), dryRun: z.boolean().exactOptional() },
  run: async (acting, { dryRun = false, promptId, sessionId }) => {
    const { spec, state } = await acting.engine.get(acting.caller.principal, sessionId);
    if (spec.enableFileCheckpointing !== true) {
      const advice = "Only a session that was started with enableFileCheckpointing can be rewound.";
      throw invalidArgument("sessionId", `no file checkpoints are kept in this session. ${advice}`);
    }
    const id = promptId ?? (await findLastPrompt(acting, sessionId, state.lastEventId));
    if (id === undefined)
      throw invalidArgument("promptId", "cannot be chosen, because the session has no prompt yet. Send one first.");
    return { promptId: id, files: await ask(acting, sessionId, { do: "rewind", promptId: id, dryRun }) };
  },
});

const PAGE = 200;

async function findLastPrompt({ caller: { principal }, engine }: ActingCaller, sessionId: string, last: number) {
  for (let end = last; end > 0; end -= PAGE) {
    const events = await engine.read(principal, sessionId, Math.max(1, end - PAGE + 1), Math.min(PAGE, end));
    const prompt = events.findLast((event) => event.type === "prompt.queued");
    if (prompt?.type === "prompt.queued") return prompt.data.promptId;
  }
  return undefined;
}
