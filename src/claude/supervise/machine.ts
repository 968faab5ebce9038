import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { startTime } from "./tree.ts";

/** Identifies the machine since its start, and the pid namespace: a recorded pid means a process only where it was recorded. */

function read(how: () => string): string {
  try {
    return how().trim();
  } catch {
    return "";
  }
}

/**
 * Equal for processes that see each other's pids. Linux adds the id of the boot, because cloned machines share their host name;
 * elsewhere, machines with a store in common need different host names.
 */
export const MACHINE = [
  hostname(),
  read(() => readlinkSync("/proc/self/ns/pid")),
  read(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8")),
]
  .join(" ")
  .trim();

/** True if `host` (`MACHINE` of a recorded process) is another machine, so that its pids say nothing here. */
export function isElsewhere(host: string | undefined): boolean {
  return host !== undefined && host !== MACHINE;
}

/** Facts by which the next owner of a process finds it, on this machine only. `startedAt` if known already. */
export async function identityHere(pid: number | undefined, startedAt?: string) {
  if (pid === undefined) return { host: MACHINE };
  const started = startedAt ?? (await startTime(pid).catch(() => undefined));
  return { host: MACHINE, pid, ...(started !== undefined && { startedAt: started }) };
}
