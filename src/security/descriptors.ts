import { readFileSync } from "node:fs";

/** File descriptors: a connection takes one, a Claude Code three. Without free descriptors nothing can be started. */

/** Limit of this process; `undefined` if the system reports none. */
export function descriptorLimit(): number | undefined {
  try {
    const [, most = ""] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return most === "" ? undefined : Number(most);
  } catch {
    return undefined;
  }
}

/** True for an error caused by a lack of descriptors: `EMFILE` in this process, `ENFILE` on the machine. */
export function isOutOfDescriptors(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE");
}

/** False if Node has made no pipe for a spawned child, because descriptors ran out. Node's types deny this case. */
export function hasPipe(pipe: unknown): boolean {
  return pipe !== undefined && pipe !== null;
}

export function outOfDescriptorsText(): string {
  const limit = descriptorLimit();
  const most = limit === undefined ? "" : `; it may have ${String(limit)}`;
  return `The server has no file descriptor left for another process (ulimit -n${most}). Raise that limit, or lower --max-live.`;
}

/** Returns the default limit of simultaneous connections. Keeps descriptors free for Claude Code, the store and its logs. */
export function connectionLimit(): number {
  const limit = descriptorLimit() ?? Number.POSITIVE_INFINITY;
  return Math.max(4, Math.min(MAX_CONNECTIONS, Math.floor((limit - OWN_DESCRIPTORS) / 2)));
}

const MAX_CONNECTIONS = 4_096;
/** Descriptors of an idle server. */
const OWN_DESCRIPTORS = 32;
