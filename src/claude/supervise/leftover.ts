import { setTimeout as sleep } from "node:timers/promises";
import { PROCESS_VARIABLE } from "../../domain/environment.ts";
import type { Leftover } from "../../engine/ports.ts";
import { findMarked, killMarked, killTree, startTime } from "./tree.ts";

const LOOK_EVERY_MS = 50;
const GONE_WITHIN_MS = 5000;

/**
 * Ends what a dead owner left running, and resolves when it is gone. A pid is trusted only together with the start time
 * that was recorded with it; the mark is ours alone.
 */
export async function endLeftover({ mark, pid, startedAt }: Leftover): Promise<void> {
  const variable = `${PROCESS_VARIABLE}=${mark}`;
  const isOurs = async () => pid !== undefined && startedAt !== undefined && (await startTime(pid)) === startedAt;
  if (pid !== undefined && (await isOurs())) await killTree(pid);
  await killMarked(variable);
  const deadline = Date.now() + GONE_WITHIN_MS;
  while (Date.now() < deadline && ((await isOurs()) || (await findMarked(variable)).length > 0))
    await sleep(LOOK_EVERY_MS);
}
