import { readFileSync } from "node:fs";

/**
 * Measures the processor time that this process spends on `work`, ms. Independent of the machine's load, unlike elapsed time: a
 * bound finds only work that grows out of proportion.
 */
export async function processorMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { system, user } = process.cpuUsage(before);
  return (system + user) / 1_000;
}

/** Returns the processor time of another process so far, ms, in steps of 10 ms (Linux). */
export function processorMsOf(pid: number): number {
  // The name before the last ")" may contain spaces. Of the fields after it, the 12th is user time and the 13th system time.
  const fields = readFileSync(`/proc/${String(pid)}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
