import { setTimeout as sleep } from "node:timers/promises";
import type { Leftover } from "../../engine/ports.ts";
import { serverOfNumber, serverOfValue } from "./mark.ts";
import { endMarked, findMarked, type Marked } from "./marked.ts";
import { killTree, startTime } from "./tree.ts";

const LOOK_EVERY_MS = 50;
const GONE_WITHIN_MS = 5000;

/**
 * Ends what the owner of a session left running, dead or too late, and resolves when it is gone. A pid is trusted only
 * together with the start time that was recorded with it; the mark is ours alone. Whatever has the number of one of these
 * belongs to them.
 */
export async function endLeftover({ mark: name, pid, startedAt }: Leftover, store: string): Promise<void> {
  const isOurs = async () => pid !== undefined && startedAt !== undefined && (await startTime(pid)) === startedAt;
  const isNamed = ({ value }: Marked) => {
    const named = value === undefined ? undefined : serverOfValue(value, store);
    return named?.isOfStore === true && named.name === name;
  };
  const known = pid !== undefined && (await isOurs()) ? pid : undefined;
  const numbers = new Set(
    (await findMarked())
      .filter((found) => isNamed(found) || found.pid === known)
      .flatMap(({ number }) => number ?? [])
      .filter((number) => serverOfNumber(number, store)?.isOfStore === true),
  );
  if (known !== undefined) await killTree(known);
  const isMeant = (found: Marked) => isNamed(found) || (found.number !== undefined && numbers.has(found.number));
  await endMarked(isMeant, GONE_WITHIN_MS);
  const deadline = performance.now() + GONE_WITHIN_MS;
  while (performance.now() < deadline && (await isOurs())) await sleep(LOOK_EVERY_MS);
}
