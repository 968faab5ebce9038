import type { BigIntStats } from "node:fs";
import * as fs from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, contentOf, readWhole, statStamp } from "./stamp.ts";

/** Maximum bytes of a file that is read, and time after which no more files are, ms. */
const [MAX_READ_BYTES, READ_MS] = [65_536, 700];

export interface TreeWalk {
  readonly root: string;
  /** Names of folders, and whole paths, that are not entered. */
  readonly skipped: ReadonlySet<string>;
  /** True to read small files. */
  readonly reads: boolean;
  readonly maxEntries: number;
}

/**
 * Stamps the files below a folder, by path. Returns `undefined` for more than `maxEntries` files and folders. Never enters a
 * link, and opens plain files only. Rejects if the folder cannot be read.
 */
export async function walkTree(walk: TreeWalk): Promise<Map<string, string> | undefined> {
  const paths = await listFiles(walk);
  if (paths === undefined) return undefined;
  const until = performance.now() + READ_MS;
  const stamps = new Map<string, string>();
  const stampRest = async (): Promise<void> => {
    for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
      const file = join(walk.root, path);
      const stats = await fs.lstat(file, { bigint: true }).catch(() => undefined);
      const reads = walk.reads && performance.now() < until;
      if (stats) stamps.set(path, statStamp(stats) + (await content(file, stats, reads).catch(() => "")));
      else if (isGarbled(path)) stamps.set(path, ABSENT);
    }
  };
  await Promise.all([stampRest(), stampRest(), stampRest(), stampRest()]);
  return stamps;
}

async function listFiles({ maxEntries, root, skipped }: TreeWalk): Promise<string[] | undefined> {
  const found: string[] = [];
  const folders = [""];
  for (let folder = folders.pop(), entries = 0; folder !== undefined; folder = folders.pop()) {
    const isRoot = folder === "";
    // A folder without permission is left out, now and later.
    const inside = await fs.readdir(join(root, folder), { withFileTypes: true }).catch((error: unknown) => {
      if (isRoot) throw error;
      if (isGarbled(folder)) found.push(folder);
      return [];
    });
    entries += inside.length;
    if (entries > maxEntries) return undefined;
    for (const entry of inside) {
      const path = isRoot ? entry.name : `${folder}/${entry.name}`;
      if (!entry.isDirectory()) found.push(path);
      else if (!skipped.has(entry.name) && !skipped.has(join(root, path))) folders.push(path);
    }
  }
  return found;
}

/** True for a name that was not UTF-8, and so leads to no file. */
export function isGarbled(name: string): boolean {
  return name.includes("\uFFFD");
}

async function content(file: string, stats: BigIntStats, reads: boolean): Promise<string> {
  if (stats.isSymbolicLink()) return contentOf(await fs.readlink(file));
  if (!reads || !stats.isFile() || stats.size > MAX_READ_BYTES) return "";
  return contentOf(await readWhole(file, stats));
}
