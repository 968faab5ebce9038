import type { Receipt } from "../../src/domain/receipt.ts";

/** Receipt of a turn that changed nothing, to start from. */
export const NOTHING_CHANGED: Receipt = {
  turn: 1,
  by: "tree",
  complete: true,
  folders: [],
  files: [],
  commits: [],
  gitFiles: [],
  notSeen: [],
  outside: [],
  commands: [],
  requests: [],
  denied: 0,
  background: 0,
  others: 0,
  between: 0,
  leftOut: 0,
};
