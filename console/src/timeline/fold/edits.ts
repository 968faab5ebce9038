import type { Item } from "./item.ts";

/** The tools of which Claude Code keeps how files were before. */
const EDITING: ReadonlySet<string> = new Set(["Edit", "MultiEdit", "NotebookEdit", "Write"]);

/** Whether files were changed behind this event, by a subagent or by Claude Code itself. */
export function areEdited(items: readonly Item[], after: number): boolean {
  return items.some((item) => {
    if (item.kind !== "call") return false;
    const isEdit = item.eventId > after && item.state === "done" && EDITING.has(item.name ?? "");
    return isEdit || areEdited(item.children, after);
  });
}
