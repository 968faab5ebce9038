import { readFileSync } from "node:fs";
import type { BackgroundTask } from "../../domain/event.ts";
import type { ProcessTag } from "./process-tag.ts";
import { hasTag, findTagged } from "./tagged-processes.ts";
import { descendants, type Entry, killTree, listProcesses, startTime } from "./tree.ts";

/** Id prefix, distinguishes detached processes from background tasks of Claude Code. */
const PREFIX = "process-";
const DESCRIPTION_LENGTH = 200;

interface TaggedTree {
  readonly tag: ProcessTag;
  readonly pid: number | undefined;
  /** True in a separate pid namespace, below the two processes that create the namespace. */
  readonly isIsolated: boolean;
}

/**
 * Processes started by a running Claude Code that have left its tree: `cmd &`, `nohup` and `setsid` leave processes behind
 * after the shell has ended. Claude Code lists none.
 */
export class DetachedProcesses {
  readonly #tree: TaggedTree;

  constructor(tree: TaggedTree) {
    this.#tree = tree;
  }

  /** Lists the topmost detached processes, without their descendants. */
  async list(): Promise<BackgroundTask[]> {
    const pids = await this.#pids();
    const found = pids.map(async (pid) => {
      const startedAt = await startTime(pid);
      if (startedAt === undefined) return [];
      return [{ id: `${PREFIX}${String(pid)}-${startedAt}`, type: "process", description: commandOf(pid) }];
    });
    return (await Promise.all(found)).flat();
  }

  /** Ends the process and its descendants. No-op if `id` is unknown. */
  async end(id: string): Promise<void> {
    const [, pid = "", startedAt] = new RegExp(`^${PREFIX}(\\d+)-(.*)$`).exec(id) ?? [];
    const isThere = (await this.#pids()).includes(Number(pid)) && (await startTime(Number(pid))) === startedAt;
    if (isThere) await killTree(Number(pid));
  }

  async #pids(): Promise<number[]> {
    const { tag, pid } = this.#tree;
    if (pid === undefined) return [];
    const tagged = (await findTagged()).filter((found) => hasTag(found, tag)).map((found) => found.pid);
    const all = await listProcesses();
    const known = new Set(this.#known(pid, all));
    const detached = new Set(tagged.filter((each) => !known.has(each)));
    const parents = new Map(all.map((entry) => [entry.pid, entry.parent]));
    return [...detached].filter((each) => parents.has(each) && !detached.has(parents.get(each) ?? 0));
  }

  /**
   * Returns the pids of Claude Code's tree. In a pid namespace, detached processes become children of its first process, whose
   * first child is Claude Code.
   */
  #known(pid: number, all: readonly Entry[]): number[] {
    if (!this.#tree.isIsolated) return [pid, ...descendants(pid, all)];
    const init = firstChild(pid, all) ?? pid;
    const claude = firstChild(init, all) ?? init;
    return [pid, init, claude, ...descendants(claude, all)];
  }
}

export function isDetachedId(taskId: string): boolean {
  return taskId.startsWith(PREFIX);
}

function firstChild(pid: number, all: readonly Entry[]): number | undefined {
  const children = all.filter(({ parent }) => parent === pid);
  return children.toSorted((one, other) => one.started - other.started).at(0)?.pid;
}

function commandOf(pid: number): string {
  try {
    const words = readFileSync(`/proc/${String(pid)}/cmdline`, "utf8")
      .replaceAll("\0", " ")
      .trim();
    return words === "" ? `process ${String(pid)}` : words.slice(0, DESCRIPTION_LENGTH);
  } catch {
    return `process ${String(pid)}`;
  }
}
