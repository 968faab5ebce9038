import { readFileSync } from "node:fs";

/** File descriptors: every connection takes one, every Claude Code three, and without them nothing can be started. */

/** Of this process; undefined where the system does not say, or sets no limit. */
export function descriptorLimit(): number | undefined {
  try {
    const [, most = ""] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return most === "" ? undefined : Number(most);
  } catch {
    return undefined;
  }
}

/** What the system answers where descriptors are short: those of this process, or those of the machine. */
export function isOutOfDescriptors(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE");
}

/** Of a child that was just spawned: Node makes no pipes where it runs out, though its types have them. */
export function hasPipe(pipe: unknown): boolean {
  return pipe !== undefined && pipe !== null;
}

export function outOfDescriptorsText(): string {
  const limit = descriptorLimit();
  const most = limit === undefined ? "" : `; it may have ${String(limit)}`;
  return `The server has no file descriptor left for another process (ulimit -n${most}). Raise that limit, or lower --max-live.`;
}

/** How many connections there may be at a time by default. What is kept free is for Claude Code, the store and its logs. */
export function connectionLimit(): number {
  const limit = descriptorLimit() ?? Number.POSITIVE_INFINITY;
  return Math.max(4, Math.min(MAX_CONNECTIONS, Math.floor((limit - OWN_DESCRIPTORS) / 2)));
}

const MAX_CONNECTIONS = 4_096;
/** Of a server that does nothing. */
const OWN_DESCRIPTORS = 32;
