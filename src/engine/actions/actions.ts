import type { AnySessionAction } from "./action.ts";
import { answer, moreTime, revoke } from "./approving.ts";
import { adopt, create, fork, reply, start } from "./begin.ts";
import { diff } from "./diff.ts";
import { cancel, close, dropQueue, interrupt, interruptPrompt, releaseQueue, remove, rename } from "./lifecycle.ts";
import { rewind, setModel, setPermissionMode, stopTask, taskOutput, usage } from "./process.ts";
import { events, get, list } from "./reading.ts";

/** All that a caller can do to sessions. Whatever a surface offers of it has its name, its scope and its limits from here. */
export const ACTIONS: readonly AnySessionAction[] = [
  start,
  create,
  reply,
  fork,
  adopt,
  list,
  get,
  events,
  diff,
  interrupt,
  interruptPrompt,
  cancel,
  close,
  remove,
  rename,
  releaseQueue,
  dropQueue,
  setModel,
  setPermissionMode,
  stopTask,
  taskOutput,
  usage,
  rewind,
  answer,
  revoke,
  moreTime,
];
