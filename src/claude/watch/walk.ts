import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Stamps } from "./walks.ts";
import { hasPipe } from "../../security/descriptors.ts";
import { fileAccess } from "../../security/files/limited.ts";
import { killAtExit } from "../../security/kill-at-exit.ts";
import { walkTree } from "./walk-tree.ts";

/** Stamps all files of a folder outside git, in a child process that can be killed if the folder does not answer. */

/** Folders that `walkFiles` does not enter. */
export const SKIPPED = [
  ".bzr",
  ".cache",
  ".git",
  ".gradle",
  ".hg",
  ".jj",
  ".mypy_cache",
  ".next",
  ".nox",
  ".nuxt",
  ".parcel-cache",
  ".pnpm-store",
  ".pytest_cache",
  ".ruff_cache",
  ".svn",
  ".terraform",
  ".tox",
  ".turbo",
  ".venv",
  ".yarn",
  "__pycache__",
  "bower_components",
  "DerivedData",
  "node_modules",
  "Pods",
  "target",
  "venv",
];

/** Maximum number of files and folders in an answer of `walkFiles`. */
export const MAX_ENTRIES = 20_000;
/** Part of the time until `Walk.until` that is left after a list of files, ms. */
const WALK_LEFT_MS = 700;
const MAX_OUTPUT = 16 * 1024 * 1024;

/** Last part of a complete output. */
export const END = "end";

interface Walk {
  readonly root: string;
  /** Folders below that are compared by themselves, absolute. */
  readonly without: readonly string[];
  /** True to read small files, so that a file that is changed back is not taken for changed. */
  readonly reads: boolean;
  /** End of the look, on the clock of `performance`, ms. */
  readonly until: number;
  /** Path of the program, for tests from the sources. */
  readonly program?: string | undefined;
}

/** Maximum number of files and folders that are listed in this process: a child process costs as much as some thousand. */
const FEW_ENTRIES = 1_000;

/** Stamps by path, or the reason why there are none. Never rejects. */
export async function walkFiles(walk: Walk): Promise<Stamps | string> {
  const { reads, root, without } = walk;
  const small = { root, skipped: new Set([...SKIPPED, ...without]), reads, maxEntries: FEW_ENTRIES };
  try {
    return (await fileAccess.run(root, async () => walkTree(small))) ?? (await walkInChild(walk));
  } catch (error) {
    return `it cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}

async function walkInChild({ program, reads, root, until, without }: Walk): Promise<Stamps | string> {
  const limitMs = Math.max(until - performance.now() - WALK_LEFT_MS, 0);
  const file = program ?? fileURLToPath(new URL("./walk-process.js", import.meta.url));
  const args = [file, reads ? "reads" : "stats", root, ...SKIPPED, ...without];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"], env: {} });
    killAtExit(child, false);
    const parts: Buffer[] = [];
    let length = 0;
    const end = (why: string) => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      if (hasPipe(child.stdout)) child.stdout.destroy();
      child.unref();
      resolve(why);
    };
    const timer = setTimeout(() => end(`the folder was not read within ${(limitMs / 1_000).toFixed(1)} s`), limitMs);
    child.on("error", ({ message }) => end(`the files cannot be listed: ${message}`));
    if (!hasPipe(child.stdout)) return;
    child.stdout.on("data", (part: Buffer) => {
      parts.push(part);
      length += part.length;
      if (length > MAX_OUTPUT) end("the names of its files are too long");
    });
    child.on("close", () => {
      clearTimeout(timer);
      resolve(parseWalk(Buffer.concat(parts).toString("utf8")));
    });
  });
}

function parseWalk(output: string): Map<string, string> | string {
  const parts = output.split("\0");
  if (parts.pop() !== END) return `it has more than ${String(MAX_ENTRIES)} files and folders, or cannot be read`;
  const stamps = new Map<string, string>();
  for (let at = 0; at + 1 < parts.length; at += 2) stamps.set(parts[at] ?? "", parts[at + 1] ?? "");
  return stamps;
}
