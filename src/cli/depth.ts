import { readDepth } from "../config/load.ts";
import { depthAbove } from "../security/ancestors.ts";

/** How deep this process is nested in sessions: by its environment, or by an ancestor's where its own was emptied (`env -i`). */
export function nestingDepth(): number {
  return Math.max(readDepth(process.env), depthAbove(process.pid));
}
