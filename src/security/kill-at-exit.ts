import type { ChildProcess } from "node:child_process";

/** Kills child processes of this server that wait for a folder which does not answer. */

/** Running children, with whether each leads a process group. */
const running = new Map<ChildProcess, boolean>();

/** Kills `child`, with its process group if it leads one. */
export function killNow(child: ChildProcess, leadsGroup: boolean): void {
  try {
    if (leadsGroup && child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    else child.kill("SIGKILL");
  } catch {
    // The process has ended, or is another user's.
  }
}

/** Kills `child` when this process exits before `child` has ended. */
export function killAtExit(child: ChildProcess, leadsGroup: boolean): void {
  if (running.size === 0) process.on("exit", killRunning);
  running.set(child, leadsGroup);
  const forget = (): void => {
    running.delete(child);
    if (running.size === 0) process.off("exit", killRunning);
  };
  child.once("close", forget);
  child.once("error", forget);
}

/** Kills these children now. */
export function killRunning(): void {
  for (const [child, leadsGroup] of running) killNow(child, leadsGroup);
}
