import { invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import { defineTool } from "../define.ts";
import { argumentsOf, type OfferedAction } from "./session/action.ts";
import { diff, get, ADVERTISED_FILTERS, list } from "./session/reading.ts";
import {
  cancel,
  close,
  dropQueue,
  interrupt,
  pack,
  releaseQueue,
  remove,
  rename,
  revoke,
} from "./session/lifecycle.ts";
import { goOn, receipt, verify } from "./session/turns.ts";
import { rewind, setModel, setPermissionMode, stopTask, taskOutput, usage } from "./session/process-control.ts";

/** Actions, defined in `engine/actions` and offered in `session/`. Their fields together are the parameters of the tool. */
const ACTIONS: readonly OfferedAction[] = [
  list,
  get,
  cancel,
  interrupt,
  releaseQueue,
  dropQueue,
  close,
  remove,
  rename,
  pack,
  setModel,
  setPermissionMode,
  revoke,
  stopTask,
  taskOutput,
  usage,
  rewind,
  diff,
  receipt,
  verify,
  goOn,
];

const ADVERTISED: Readonly<Record<string, JsonObject>> = {
  ...ADVERTISED_FILTERS,
  sessionId: { type: "string", description: "for all but list. Default: none" },
  permissionMode: { type: "string", description: "Default: none" },
};

/** Lists and controls sessions. */
export const claudeCodeSession = defineTool({
  name: "claude_code_session",
  title: "Claude Code sessions",
  description:
    "List (newest first), get or control sessions. cancel and close are permanent; interrupt only ends the turn. None is needed to stop polling.",
  input: argumentsOf(ACTIONS),
  advertised: ADVERTISED,
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  scope: Object.fromEntries(ACTIONS.map(({ name, scope }) => [name, scope])),
  async handle({ action, ...given }, call, deps) {
    const chosen = ACTIONS.find(({ name }) => name === action);
    if (!chosen) throw invalidArgument("action", "is not known.");
    return { answer: await chosen.run(given, call, deps) };
  },
});
