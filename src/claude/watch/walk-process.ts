import type { BigIntStats } from "node:fs";
import * as fs from "node:fs/promises";
import { join } from "node:path";
import { contentOf, readWhole, statStamp } from "./stamp.ts";

/**
 * Program of `walkFiles`, with arguments `reads` or `stats`, the folder, and names and paths of folders not to enter. Writes path and stamp of each file below a folder, each followed by a NUL, and `end` after the last.
 * Never enters a link, and opens plain files only.
 */

const MAX_ENTRIES = 20_000;
/** Maximum bytes of a file that is read, and time after which no more files are, ms. */
const [MAX_READ_BYTES, READ_MS] = [65_536, 700];

const [, , reads = "", root = "", ...names] = process.argv;
/** Names of folders and whole paths that are not entered. */
const skipped = new Set(names);
const found: string[] = [];
const folders = [""];
let entries = 0;

while (folders.length > 0 && entries <= MAX_ENTRIES) {
  const folder = folders.pop() ?? "";
  // A folder without permission is left out, now and later.
  const inside = await fs.readdir(join(root, folder), { withFileTypes: true }).catch((error: unknown) => {
    if (folder === "") throw error;
    return [];
  });
  entries += inside.length;
  for (const entry of inside) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (!entry.isDirectory()) found.push(path);
    else if (!skipped.has(entry.name) && !skipped.has(join(root, path))) folders.push(path);
  }
}
if (entries <= MAX_ENTRIES) {
  const stamped = await Promise.all(
    [0, 1, 2, 3].map(async (part) => stampAll(found.filter((_, at) => at % 4 === part))),
  );
  process.stdout.write([...stamped.flat(), "end"].join("\0"));
}

async function stampAll(paths: readonly string[]): Promise<string[]> {
  const output: string[] = [];
  for (const path of paths) {
    const file = join(root, path);
    const stats = await fs.lstat(file, { bigint: true }).catch(() => undefined);
    if (stats) output.push(path, statStamp(stats) + (await content(file, stats).catch(() => "")));
  }
  return output;
}

async function content(file: string, stats: BigIntStats): Promise<string> {
  if (stats.isSymbolicLink()) return contentOf(await fs.readlink(file));
  if (reads !== "reads" || !stats.isFile() || stats.size > MAX_READ_BYTES || performance.now() > READ_MS) return "";
  return contentOf(await readWhole(file, stats));
}
