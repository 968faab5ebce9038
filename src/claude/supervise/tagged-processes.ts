import { readdirSync, readFileSync } from "node:fs";
import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import { isOutOfDescriptors } from "../../security/descriptors.ts";
import { TAG_VARIABLE, type ProcessTag } from "./process-tag.ts";
import { isZombie, outputOfPs, signal } from "./tree.ts";

/** Processes that carry a tag of ours, wherever they stand in the tree by now. */

const MAX_PS = 64 * 1024 * 1024;
/** Processes that are read in one batch; other work runs between batches. */
const AT_ONCE = 100;
const LOOK_EVERY_MS = 50;

export interface TaggedProcess {
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
  const listed = await outputOfPs(["-axEww", "-o", "pid=,command="], MAX_PS);
  return listed.split("\n").flatMap((line) => {
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
