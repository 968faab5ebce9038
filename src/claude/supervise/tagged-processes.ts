import { readdirSync, readFileSync } from "node:fs";
import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import { isOutOfDescriptors } from "../../security/descriptors.ts";
import { TAG_VARIABLE, type ProcessTag } from "./process-tag.ts";
import { isZombie, runPs, signal } from "./tree.ts";

/** Finds and ends processes by their tag, independent of the process tree. */

/** Maximum output of `ps`, bytes. */
const MAX_PS = 64 * 1024 * 1024;
/** Processes per batch. The event loop runs between batches. */
const AT_ONCE = 100;
const LOOK_EVERY_MS = 50;
/** Maximum number of lists of processes in one search, because a busy machine starts processes all the time. */
const MAX_ROUNDS = 5;

export interface TaggedProcess {
  readonly pid: number;
  /** Value of `TAG_VARIABLE`; `undefined` if the environment was emptied or cannot be read. */
  readonly value: string | undefined;
  /** Soft limit of file locks, which may be the `number` of a `ProcessTag`. Read on Linux only. */
  readonly number: string | undefined;
}

/**
 * Returns all processes that may carry a tag, of this server or another. Returns none on Windows, because neither environment
 * nor limits of a process can be read there. Rejects if file descriptors run out, because an unread process may carry a tag.
 */
export async function findTagged(): Promise<TaggedProcess[]> {
  if (process.platform === "win32") return [];
  if (process.platform !== "linux") return listTaggedByPs();
  const found: TaggedProcess[] = [];
  const read = new Set<string>();
  // Lists again until nothing is new, because a process may start another and end before it is read.
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && !read.has(name));
    if (pids.length === 0) break;
    for (let at = 0; at < pids.length; at += AT_ONCE) {
      found.push(...pids.slice(at, at + AT_ONCE).flatMap((pid) => readTaggedProcess(Number(pid)) ?? []));
      await breathe();
    }
    for (const pid of pids) read.add(pid);
  }
  return found;
}

const VARIABLE = new RegExp(`(?:^|\0)${TAG_VARIABLE}=([^\0]*)`);

function readTaggedProcess(pid: number): TaggedProcess | undefined {
  const number = /^Max file locks +(\d+)/m.exec(textOf(`/proc/${String(pid)}/limits`))?.[1];
  const value = VARIABLE.exec(textOf(`/proc/${String(pid)}/environ`))?.[1];
  if ((number === undefined && value === undefined) || isZombie(pid)) return undefined;
  return { pid, number, value };
}

async function listTaggedByPs(): Promise<TaggedProcess[]> {
  const listed = await runPs(["-axEww", "-o", "pid=,command="], MAX_PS);
  return listed.split("\n").flatMap((line) => {
    const value = line.split(` ${TAG_VARIABLE}=`)[1]?.split(" ")[0];
    return value === undefined ? [] : [{ pid: Number.parseInt(line, 10), value, number: undefined }];
  });
}

/** True if the process descends from the process started with `tag`. */
export function hasTag({ number, value }: TaggedProcess, tag: ProcessTag): boolean {
  return value === tag.value || (number !== undefined && number === tag.number);
}

/**
 * Sends `SIGKILL` to all processes selected by `meant`, and repeats until none is left, because a killed process may just have
 * started another. Resolves to their number after `ms` at the latest; until then, waits for file descriptors if necessary.
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

function ifOutOfDescriptors(error: unknown): undefined {
  if (!isOutOfDescriptors(error)) throw error;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    // The process has ended, or belongs to another user.
    return "";
  }
}
