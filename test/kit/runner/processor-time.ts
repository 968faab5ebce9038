import { readFileSync } from "node:fs";

/**
 * The processor time that this process spends on the work, ms. Unlike elapsed time it does not depend on the load of the
 * machine: a bound on it finds work that grows out of proportion, and nothing else.
 */
export async function processorMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { system, user } = process.cpuUsage(before);
  return (system + user) / 1_000;
}

/** The processor time that another process has spent so far, ms. Linux counts it in hundredths of a second. */
export function processorMsOf(pid: number): number {
  // The name before the last ")" may contain spaces. Of the fields behind it, the 12th is the time in user mode, the next in the kernel.
  const fields = readFileSync(`/proc/${String(pid)}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
