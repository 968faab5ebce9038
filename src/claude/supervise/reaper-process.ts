import { setTimeout as sleep } from "node:timers/promises";
import { createInterface } from "node:readline";
import { killTree, signal, startTime } from "./tree.ts";

/**
 * The program behind Reaper: reads `+PID` and `-PID` lines; at the end of its input it asks every process that is
 * still there to end, and kills the trees of those that have not after a while.
 */

const GRACE_MS = 4000;
const LOOK_EVERY_MS = 100;

const watched = new Map<number, Promise<string | undefined>>();

for await (const line of createInterface({ input: process.stdin })) {
  const pid = Number(line.slice(1));
  if (line.startsWith("+")) watched.set(pid, startTime(pid));
  else watched.delete(pid);
}
await Promise.all([...watched].map(async ([pid, started]) => end(pid, await started)));

async function end(pid: number, started: string | undefined): Promise<void> {
  const isOurs = async () => started !== undefined && (await startTime(pid)) === started;
  if (!(await isOurs())) return;
  signal(pid, "SIGTERM");
  const deadline = Date.now() + GRACE_MS;
  while (Date.now() < deadline) {
    await sleep(LOOK_EVERY_MS);
    if (!(await isOurs())) return;
  }
  await killTree(pid);
}
