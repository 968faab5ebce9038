import { z } from "zod";
import type { ControlRequest } from "../../../domain/control.ts";
import { invalidArgument } from "../../../domain/error.ts";
import { PermissionMode } from "../../../domain/permission.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { inUsd } from "../../present/result.ts";
import { fit, jsonBytes } from "../../present/size.ts";
import { SessionId } from "../../prompt.ts";
import { defineAction } from "./action.ts";
import { ANSWER_BYTES, publicView } from "./view.ts";

/** What the running Claude Code is asked: at once where it runs, in this server or in another. */

const fields = { sessionId: SessionId };
const taskId = z.string().min(1).max(200).describe("of background. Default: none");
const BY = "caller";

async function ask(sessionId: string, request: ControlRequest, call: ToolCall, { engine }: ToolDeps) {
  return engine.control(call, sessionId, request, BY);
}

export const setModel = defineAction({
  name: "set_model",
  scope: "run",
  fields: { ...fields, model: z.string().min(1).max(200).describe("for set_model. Default: none") },
  async run({ model, sessionId }, call, deps) {
    await ask(sessionId, { do: "configure", model }, call, deps);
    const message = `The session uses ${model} from its next request to the model on.`;
    return { sessions: [publicView(await deps.engine.get(call.principal, sessionId))], message };
  },
});

export const setPermissionMode = defineAction({
  name: "set_permission_mode",
  scope: "run",
  fields: { ...fields, permissionMode: PermissionMode.describe("for set_permission_mode. Default: none") },
  async run({ permissionMode, sessionId }, call, deps) {
    await ask(sessionId, { do: "configure", permissionMode }, call, deps);
    const message = `The session is in permission mode ${permissionMode}.`;
    return { sessions: [publicView(await deps.engine.get(call.principal, sessionId))], message };
  },
});

export const stopTask = defineAction({
  name: "stop_task",
  scope: "run",
  fields: { ...fields, taskId },
  async run({ sessionId, taskId: id }, call, deps) {
    const { state } = await deps.engine.get(call.principal, sessionId);
    // Claude Code stops an unknown one without a word.
    if (!state.background.some((task) => task.id === id)) {
      const running = state.background.map((task) => task.id).join(", ");
      throw invalidArgument("taskId", `no task ${id} runs. Running: ${running === "" ? "none" : running}.`);
    }
    await ask(sessionId, { do: "stop-task", taskId: id }, call, deps);
    return { message: `Task ${id} is stopped.` };
  },
});

export const taskOutput = defineAction({
  name: "task_output",
  scope: "read",
  fields: { ...fields, taskId },
  async run({ sessionId, taskId: id }, call, deps) {
    const task = await ask(sessionId, { do: "task-output", taskId: id }, call, deps);
    const { cut, value } = fit(task, ANSWER_BYTES - jsonBytes({ task: {}, truncated: true }));
    return { task: value, ...(cut && { truncated: true }) };
  },
});

export const usage = defineAction({
  name: "usage",
  scope: "read",
  fields,
  async run({ sessionId }, call, deps) {
    const told = await ask(sessionId, { do: "usage" }, call, deps);
    const { state } = await deps.engine.get(call.principal, sessionId);
    const { costUsd, turns } = state.totals;
    return { usage: { ...told, totalTurns: turns, totalCostUsd: inUsd(costUsd) } };
  },
});

export const rewind = defineAction({
  name: "rewind",
  scope: "run",
  fields: {
    ...fields,
    promptId: z.string().min(1).max(200).exactOptional().describe("Default: the last prompt"),
    dryRun: z.boolean().exactOptional().describe("Default: false"),
  },
  async run({ dryRun = false, promptId, sessionId }, call, deps) {
    const { spec, state } = await deps.engine.get(call.principal, sessionId);
    if (spec.enableFileCheckpointing !== true) {
      const advice = "Only a session that was started with advanced.enableFileCheckpointing can be rewound.";
      throw invalidArgument("action", `no file checkpoints are kept in this session. ${advice}`);
    }
    const id = promptId ?? (await lastPrompt(sessionId, state.lastEventId, call, deps));
    if (id === undefined) throw invalidArgument("promptId", "is required: the session has had no prompt yet.");
    const files = await ask(sessionId, { do: "rewind", promptId: id, dryRun }, call, deps);
    const message = dryRun ? "This would change." : "The files are as they were before that prompt.";
    return { rewound: { promptId: id, ...files }, message };
  },
});

const PAGE = 200;

async function lastPrompt(sessionId: string, last: number, { principal }: ToolCall, { engine }: ToolDeps) {
  for (let end = last; end > 0; end -= PAGE) {
    const events = await engine.read(principal, sessionId, Math.max(1, end - PAGE + 1), Math.min(PAGE, end));
    const prompt = events.findLast((event) => event.type === "prompt.queued");
    if (prompt?.type === "prompt.queued") return prompt.data.promptId;
  }
  return undefined;
}
