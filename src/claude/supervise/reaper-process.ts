import { setTimeout as sleep } from "node:timers/promises";
import { createInterface } from "node:readline";
import type { ProcessTag } from "./process-tag.ts";
import { hasTag, endTagged } from "./tagged-processes.ts";
import { killTree, signal, startTime } from "./tree.ts";

/**
 * Program of `Reaper`. Writes `ready`, then reads lines `+PID NUMBER VALUE`, `-PID` and `=MS`. At the end of input, and MS after
 * the last `=MS`, sends `SIGTERM` to every registered process, kills the trees of survivors after `GRACE_MS`, and finally all
 * processes with a registered tag.
 */

const GRACE_MS = 3000;
const LOOK_EVERY_MS = 100;
const SWEEP_MS = 60_000;

interface Watched {
  readonly tag: ProcessTag;
  readonly startedAt: Promise<string | undefined>;
}

const watched = new Map<number, Watched>();
let leaseTimer: NodeJS.Timeout | undefined;

// All modules are loaded: the program's files may be deleted from now on.
process.stdout.write("ready\n");

for await (const line of createInterface({ input: process.stdin })) {
  const [, sign, pid, number, value = ""] = /^([+-])(\d+)(?: (\d*) (.*))?$/.exec(line) ?? [];
  if (sign === "+")
    watched.set(Number(pid), {
      tag: { value, number: number === "" ? undefined : number },
      startedAt: timeOf(Number(pid)),
    });
  else if (sign === "-") watched.delete(Number(pid));
  else if (/^=\d+$/.test(line)) setLease(Number(line.slice(1)));
}
clearTimeout(leaseTimer);
await endAll();

function setLease(forMs: number): void {
  clearTimeout(leaseTimer);
  leaseTimer = setTimeout(() => void endAll(), forMs);
}

async function endAll(): Promise<void> {
  const all = [...watched];
  watched.clear();
  await Promise.all(all.map(async ([pid, each]) => end(pid, each)));
}

/** Without a start time, only the tag identifies the process. */
async function timeOf(pid: number): Promise<string | undefined> {
  return startTime(pid).catch(() => undefined);
}

async function end(pid: number, { tag, startedAt }: Watched): Promise<void> {
  const started = await startedAt;
  const isOurs = async () => started !== undefined && (await timeOf(pid)) === started;
  const deadline = performance.now() + GRACE_MS;
  if (await isOurs()) signal(pid, "SIGTERM");
  // A stopped process does not handle `SIGTERM` before `SIGCONT`.
  if (await isOurs()) signal(pid, "SIGCONT");
  while (performance.now() < deadline && (await isOurs())) await sleep(LOOK_EVERY_MS);
  if (await isOurs()) await killTree(pid);
  await endTagged((found) => hasTag(found, tag), SWEEP_MS);
}
