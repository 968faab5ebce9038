import * as actions from "../../../engine/actions/process-control.ts";
import { roundUsd } from "../../../domain/usage.ts";
import { fit, jsonBytes } from "../../../view/size.ts";
import { offer } from "./action.ts";
import { ANSWER_BYTES, publicView } from "./session-fields.ts";
import { presentUse } from "./use.ts";

/** Requests to the running Claude Code, and their answers. */

export const setModel = offer(actions.setModel, {
  words: { model: "Default: none" },
  present: async (_, { model, sessionId }, { principal }, { engine }) => {
    const message = `The session uses ${model} from its next request to the model on.`;
    return { sessions: [publicView(await engine.get(principal, sessionId))], message };
  },
});

export const setPermissionMode = offer(actions.setPermissionMode, {
  words: { permissionMode: "Default: none" },
  present: async (_, { permissionMode, sessionId }, { principal }, { engine }) => {
    const message = `The session is in permission mode ${permissionMode}.`;
    return { sessions: [publicView(await engine.get(principal, sessionId))], message };
  },
});

const ofTask = { taskId: "from background. Default: none" };

export const stopTask = offer(actions.stopTask, {
  words: ofTask,
  present: (_, { taskId }) => ({ message: `Task ${taskId} is stopped.` }),
});

export const taskOutput = offer(actions.taskOutput, {
  words: ofTask,
  present: (task) => {
    const { cut, value } = fit(task, ANSWER_BYTES - jsonBytes({ task: {}, truncated: true }));
    return { task: value, ...(cut && { truncated: true }) };
  },
});

export const usage = offer(actions.usage, {
  present: ({ spec, state, told, unasked, use }, _, { client }, deps) => {
    const { costUsd, turns } = state.totals;
    const totals = { totalTurns: turns, totalCostUsd: roundUsd(costUsd) };
    const { profile } = spec;
    return {
      usage: {
        ...(told ?? { contextUnknown: unasked }),
        ...totals,
        ...presentUse(use, { now: deps.now(), showsFolder: client.isLocal === true || deps.allows.sensitiveDetails }),
        ...(profile !== undefined && { profile }),
      },
    };
  },
});

export const rewind = offer(actions.rewind, {
  words: { promptId: "Default: the last prompt", dryRun: "Default: false" },
  present: ({ files, promptId }, { dryRun = false }) => {
    const message = dryRun
      ? "Dry run: these files would change."
      : "The files are restored to their state before that prompt.";
    return { rewound: { promptId, ...files }, message };
  },
});
