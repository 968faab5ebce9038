import { readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Leftover } from "../../engine/ports.ts";
import { isElsewhere } from "./machine.ts";
import { parseTagNumber, parseTagValue } from "./process-tag.ts";
import { endTagged, findTagged, type TaggedProcess } from "./tagged-processes.ts";
import { ancestors, killTree, listProcesses, startTime } from "./tree.ts";

/** Finds and ends processes left by dead servers, for one session or a whole store. */

const LOOK_EVERY_MS = 50;
const GONE_WITHIN_MS = 5000;

/**
 * Ends the processes left by the former owner of a session, dead or fenced, and resolves once they are gone. `pid` counts only
 * together with `startedAt`, because pids are reused, and only on this machine. A process with the tag number of a named process belongs to the session
 * too.
 */
export async function endLeftover(leftover: Leftover, store: string): Promise<void> {
  const { processTag: name, startedAt } = leftover;
  const pid = isElsewhere(leftover.host) ? undefined : leftover.pid;
  const isOurs = async () => pid !== undefined && startedAt !== undefined && (await startTime(pid)) === startedAt;
  const isNamed = ({ value }: TaggedProcess) => {
    const named = value === undefined ? undefined : parseTagValue(value, store);
    return named?.isOfStore === true && named.name === name;
  };
  const known = pid !== undefined && (await isOurs()) ? pid : undefined;
  const numbers = new Set(
    (await findTagged())
      .filter((found) => isNamed(found) || found.pid === known)
      .flatMap(({ number }) => number ?? [])
      .filter((number) => parseTagNumber(number, store)?.isOfStore === true),
  );
  if (known !== undefined) await killTree(known);
  const isMeant = (found: TaggedProcess) => isNamed(found) || (found.number !== undefined && numbers.has(found.number));
  await endTagged(isMeant, GONE_WITHIN_MS);
  const deadline = performance.now() + GONE_WITHIN_MS;
  while (performance.now() < deadline && (await isOurs())) await sleep(LOOK_EVERY_MS);
}

/**
 * Ends processes left by dead servers of `store`, also of idle sessions. Skips tags of different stores and of living servers,
 * and different pid namespaces, because a pid there is not a pid here.
 */
export async function endAllLeftovers(store: string, ms: number): Promise<number> {
  const leftovers = await findAllLeftovers(store);
  const isTheirs = ({ number, value }: TaggedProcess) =>
    leftovers.some((each) => each.value === value && each.number === number);
  return leftovers.length > 0 ? endTagged(isTheirs, ms) : 0;
}

/** Returns the processes that `endAllLeftovers` would end. */
export async function findAllLeftovers(store: string): Promise<readonly TaggedProcess[]> {
  const tagged = await withoutOwnTags(await findTagged());
  const named = tagged.map(({ number, value }) => readServer({ number, value }, store));
  const pids = new Set(named.flatMap((server) => server?.pid ?? []));
  const began = new Map(await Promise.all([...pids].map(async (pid) => [pid, await startTime(pid)] as const)));
  const isLeftover = (found: TaggedProcess): boolean => {
    const server = readServer(found, store);
    if (!server?.isOfStore || !began.has(server.pid) || !isInOurNamespace(found.pid)) return false;
    const startedAt = began.get(server.pid);
    return startedAt === undefined || !server.began(startedAt);
  };
  return tagged.filter(isLeftover);
}

/**
 * Omits processes with a tag of this process or of an ancestor. A server inside a session inherits such tags; inside a pid
 * namespace the servers that started those processes are invisible and would count as dead.
 */
async function withoutOwnTags(tagged: readonly TaggedProcess[]): Promise<readonly TaggedProcess[]> {
  const line = new Set(ancestors(process.pid, await listProcesses()));
  const above = tagged.filter(({ pid }) => pid === process.pid || line.has(pid));
  const isAbove = ({ number, value }: TaggedProcess) =>
    above.some(
      (each) => (value !== undefined && each.value === value) || (number !== undefined && each.number === number),
    );
  return tagged.filter((each) => !isAbove(each));
}

/** Prefers `number`, because nothing changes the limit by accident. */
function readServer({ number, value }: Pick<TaggedProcess, "number" | "value">, store: string) {
  const byNumber = number === undefined ? undefined : parseTagNumber(number, store);
  return byNumber ?? (value === undefined ? undefined : parseTagValue(value, store));
}

function isInOurNamespace(pid: number): boolean {
  if (process.platform !== "linux") return true;
  try {
    return readlinkSync(`/proc/${String(pid)}/ns/pid`) === readlinkSync("/proc/self/ns/pid");
  } catch {
    return false;
  }
}
