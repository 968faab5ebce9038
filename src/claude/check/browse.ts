import { opendir, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, sep } from "node:path";
import type { Confinement } from "../../domain/principal.ts";
import { isAllowed } from "./folders.ts";

/** Entries of a folder that are looked at, and folders of them that are named. */
const [LOOKED_AT, NAMED] = [5_000, 200];

/**
 * The folders that a path which is being typed may go on to: inside of the folders that are allowed, by where they really
 * are, so that nobody learns what there is outside. Hidden ones only where a dot is typed.
 */
export async function foldersBelow(typed: string, { allowDirs }: Pick<Confinement, "allowDirs">): Promise<string[]> {
  const roots = allowDirs.filter((root) => root.startsWith(typed));
  if (!isAbsolute(typed)) return typed === "" ? roots : [];
  const isWhole = typed.endsWith(sep);
  const [parent, begun] = isWhole ? [typed, ""] : [dirname(typed), basename(typed)];
  const below = await foldersIn(parent, begun, allowDirs).catch(() => []);
  return [...new Set([...roots, ...below])].slice(0, NAMED);
}

async function foldersIn(parent: string, begun: string, allowDirs: readonly string[]): Promise<string[]> {
  if (!(await isInside(parent, allowDirs))) return [];
  const found: string[] = [];
  let looked = 0;
  // It closes itself when the loop is left.
  for await (const entry of await opendir(parent)) {
    looked += 1;
    if (looked > LOOKED_AT || found.length === NAMED) break;
    const { name } = entry;
    if (!name.startsWith(begun) || (name.startsWith(".") && !begun.startsWith("."))) continue;
    const path = join(parent, name);
    if (entry.isDirectory() || (entry.isSymbolicLink() && (await isFolderInside(path, allowDirs)))) found.push(path);
  }
  return found.toSorted();
}

async function isFolderInside(path: string, allowDirs: readonly string[]): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === true && isInside(path, allowDirs);
}

async function isInside(path: string, allowDirs: readonly string[]): Promise<boolean> {
  return allowDirs.length === 0 || isAllowed(await realpath(path), allowDirs);
}
