import { execFile } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { isOutOfDescriptors } from "../../security/descriptors.ts";
import { TAG_VARIABLE, serverOfNumber, serverOfValue, type ProcessTag } from "./process-tag.ts";
import { ancestors, isZombie, listProcesses, signal, startTime, killTree } from "./tree.ts";
import type { Leftover } from "../../engine/ports.ts";

/** Processes that carry a tag of ours, wherever they stand in the tree by now. */

const run = promisify(execFile);

const MAX_PS = 64 * 1024 * 1024;
/** Processes that are read in one batch; other work runs between batches. */
const AT_ONCE = 100;
const LOOK_EVERY_MS = 50;
const GONE_WITHIN_MS = 5000;

interface TaggedProcess {
  readonly pid: number;
  /** Of TAG_VARIABLE; undefined where the environment was emptied, or is not to be read. */
  readonly value: string | undefined;
  readonly number: string | undefined;
}

/**
 * Nothing on Windows, where neither environment nor limits of others can be read. Rejects where descriptors are short: who
 * cannot be looked at may carry one.
 */
export async function findTagged(): Promise<TaggedProcess[]> {
  if (process.platform === "win32") return [];
  if (process.platform !== "linux") return listedByPs();
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const found: TaggedProcess[] = [];
  for (let at = 0; at < pids.length; at += AT_ONCE) {
    found.push(...pids.slice(at, at + AT_ONCE).flatMap((pid) => lookAt(Number(pid)) ?? []));
    await breathe();
  }
  return found;
}

const VARIABLE = new RegExp(`(?:^|\0)${TAG_VARIABLE}=([^\0]*)`);

function lookAt(pid: number): TaggedProcess | undefined {
  const number = /^Max file locks +(\d+)/m.exec(textOf(`/proc/${String(pid)}/limits`))?.[1];
  const value = VARIABLE.exec(textOf(`/proc/${String(pid)}/environ`))?.[1];
  if ((number === undefined && value === undefined) || isZombie(pid)) return undefined;
  return { pid, number, value };
}

async function listedByPs(): Promise<TaggedProcess[]> {
  const { stdout } = await run("ps", ["-axEww", "-o", "pid=,command="], { maxBuffer: MAX_PS }).catch(() => ({
    stdout: "",
  }));
  return stdout.split("\n").flatMap((line) => {
    const value = line.split(` ${TAG_VARIABLE}=`)[1]?.split(" ")[0];
    return value === undefined ? [] : [{ pid: Number.parseInt(line, 10), value, number: undefined }];
  });
}

/** Whether the process descends from the one that was started with this tag. */
export function hasTag({ number, value }: TaggedProcess, tag: ProcessTag): boolean {
  return value === tag.value || (number !== undefined && number === tag.number);
}

/**
 * SIGKILL to all that are `meant`, looked for again until there are none: what is killed may just have started another.
 * Resolves with how many there were, at the latest after `ms`; until then, short descriptors are waited for.
 */
export async function endTagged(meant: (found: TaggedProcess) => boolean, ms: number): Promise<number> {
  const ended = new Set<number>();
  const deadline = performance.now() + ms;
  for (;;) {
    const found = await findTagged().catch(ifOutOfDescriptors);
    const left = found?.filter((each) => each.pid !== process.pid && meant(each));
    for (const { pid } of left ?? []) {
      signal(pid, "SIGKILL");
      ended.add(pid);
    }
    if (left?.length === 0 || performance.now() > deadline) return ended.size;
    await sleep(LOOK_EVERY_MS);
  }
}

/**
 * Ends what dead servers of this store have left, sessions at rest or not. What names another store or a server that lives
 * is not ours to end, nor is anything of another pid namespace: a pid there is not a pid here.
 */
export async function endAbandoned(store: string, ms: number): Promise<number> {
  const tagged = await withoutOurs(await findTagged());
  const named = tagged.map(({ number, value }) => serverOf({ number, value }, store));
  const pids = new Set(named.flatMap((server) => server?.pid ?? []));
  const began = new Map(await Promise.all([...pids].map(async (pid) => [pid, await startTime(pid)] as const)));
  const isAbandoned = (found: TaggedProcess): boolean => {
    const server = serverOf(found, store);
    if (!server?.isOfStore || !began.has(server.pid) || !isInOurNamespace(found.pid)) return false;
    const startedAt = began.get(server.pid);
    return startedAt === undefined || !server.began(startedAt);
  };
  const abandoned = tagged.filter(isAbandoned);
  const isTheirs = ({ number, value }: TaggedProcess) =>
    abandoned.some((each) => each.value === value && each.number === number);
  return abandoned.length > 0 ? endTagged(isTheirs, ms) : 0;
}

/**
 * A server that runs in a session carries its tag, as those above it carry the tags of theirs. In a pid namespace it does not
 * see who started these, and would take them for dead.
 */
async function withoutOurs(tagged: readonly TaggedProcess[]): Promise<readonly TaggedProcess[]> {
  const line = new Set(ancestors(process.pid, await listProcesses()));
  const above = tagged.filter(({ pid }) => pid === process.pid || line.has(pid));
  const isAbove = ({ number, value }: TaggedProcess) =>
    above.some(
      (each) => (value !== undefined && each.value === value) || (number !== undefined && each.number === number),
    );
  return tagged.filter((each) => !isAbove(each));
}

/** The number first: it is not changed by accident. */
function serverOf({ number, value }: Pick<TaggedProcess, "number" | "value">, store: string) {
  const byNumber = number === undefined ? undefined : serverOfNumber(number, store);
  return byNumber ?? (value === undefined ? undefined : serverOfValue(value, store));
}

function isInOurNamespace(pid: number): boolean {
  if (process.platform !== "linux") return true;
  try {
    return readlinkSync(`/proc/${String(pid)}/ns/pid`) === readlinkSync("/proc/self/ns/pid");
  } catch {
    return false;
  }
}

function ifOutOfDescriptors(error: unknown): undefined {
  if (!isOutOfDescriptors(error)) throw error;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    // It has ended meanwhile, or is not ours to read.
    return "";
  }
}

/**
 * Ends what the owner of a session left running, dead or too late, and resolves when it is gone. A pid is trusted only
 * together with the start time that was recorded with it; the tag is ours alone. Whatever has the number of one of these
 * belongs to them.
 */
export async function endLeftover({ processTag: name, pid, startedAt }: Leftover, store: string): Promise<void> {
  const isOurs = async () => pid !== undefined && startedAt !== undefined && (await startTime(pid)) === startedAt;
  const isNamed = ({ value }: TaggedProcess) => {
    const named = value === undefined ? undefined : serverOfValue(value, store);
    return named?.isOfStore === true && named.name === name;
  };
  const known = pid !== undefined && (await isOurs()) ? pid : undefined;
  const numbers = new Set(
    (await findTagged())
      .filter((found) => isNamed(found) || found.pid === known)
      .flatMap(({ number }) => number ?? [])
      .filter((number) => serverOfNumber(number, store)?.isOfStore === true),
  );
  if (known !== undefined) await killTree(known);
  const isMeant = (found: TaggedProcess) => isNamed(found) || (found.number !== undefined && numbers.has(found.number));
  await endTagged(isMeant, GONE_WITHIN_MS);
  const deadline = performance.now() + GONE_WITHIN_MS;
  while (performance.now() < deadline && (await isOurs())) await sleep(LOOK_EVERY_MS);
}
