import { readFileSync } from "node:fs";
import type { BackgroundTask } from "../../domain/event.ts";
import type { ProcessTag } from "./process-tag.ts";
import { hasTag, findTagged } from "./tagged-processes.ts";
import { descendants, type Entry, killTree, listProcesses, startTime } from "./tree.ts";

/** Prefix of their ids, which tells them from the background tasks of Claude Code. */
const PREFIX = "process-";
const DESCRIPTION_LENGTH = 200;

interface TaggedTree {
  readonly tag: ProcessTag;
  readonly pid: number | undefined;
  /** In a pid namespace of its own, below the two processes that make it. */
  readonly isIsolated: boolean;
}

/**
 * Processes that a running Claude Code has started, and that have left its tree: what `cmd &`, nohup and setsid leave running
 * when their shell ends. Claude Code shows none of them.
 */
export class DetachedProcesses {
  readonly #tree: TaggedTree;

  constructor(tree: TaggedTree) {
    this.#tree = tree;
  }

  /** Each with what it has started itself as one. */
  async list(): Promise<BackgroundTask[]> {
    const pids = await this.#pids();
    const found = pids.map(async (pid) => {
      const startedAt = await startTime(pid);
      if (startedAt === undefined) return [];
      return [{ id: `${PREFIX}${String(pid)}-${startedAt}`, type: "process", description: commandOf(pid) }];
    });
    return (await Promise.all(found)).flat();
  }

  /** Ends the one of this id with all below it. */
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

  /** The tree of Claude Code. In a namespace detached ones have its first process for a parent, whose first child is Claude Code. */
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
