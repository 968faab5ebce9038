import { walkTree } from "./walk-tree.ts";

/**
 * Program of `walkFiles`, with arguments `reads` or `stats`, the folder, and names and paths of folders not to enter. Writes
 * path and stamp of each file below the folder, each followed by a NUL, and `end` after the last.
 */

const MAX_ENTRIES = 20_000;

const [, , reads = "", root = "", ...names] = process.argv;
const stamps = await walkTree({ root, skipped: new Set(names), reads: reads === "reads", maxEntries: MAX_ENTRIES });
if (stamps) process.stdout.write([...[...stamps].flat(), "end"].join("\0"));
