import type { Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { invalidArgument } from "../../domain/error.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { fileAccess, lstat, otherwise, realpath, stat } from "../../security/files/limited.ts";
import { isNormal } from "../../security/normal-path.ts";
import { isInside, findRealPath } from "../../security/paths.ts";
import { findProtection, type ProtectedPath } from "../../security/protected-paths.ts";
import type { Confinement } from "../../domain/principal.ts";

/**
 * Checks paths before a process uses them. `roots` are the allowed folders; [] allows any. With `roots` the real path is
 * returned, so that a link changed afterwards has no effect. `closed` are the paths that no session may reach. All functions
 * throw INVALID_ARGUMENT naming the field.
 */

/** Returns the options after checking every folder and file. */
export async function checkPlaces(
  options: SessionOptions,
  roots: readonly string[],
  closed: readonly ProtectedPath[],
): Promise<SessionOptions> {
  const cwd = await checkFolder("cwd", options.cwd, roots, closed);
  const { additionalDirectories: folders, debugFile } = options;
  const real: string[] = [];
  // Relative folders count from `cwd`, as for Claude Code.
  for (const [index, folder] of (folders ?? []).entries()) {
    const field = `additionalDirectories[${String(index)}]`;
    if (/^~(?:\/|$)/.test(folder))
      throw invalidArgument(field, `${folder}: ~ is not expanded. Write the absolute path.`);
    real.push(await checkFolder(field, resolve(cwd, folder), roots, closed));
  }
  const file =
    debugFile === undefined ? undefined : await checkFile("debugFile", resolve(cwd, debugFile), roots, closed);
  if (roots.length === 0) return options;
  return {
    ...options,
    cwd,
    ...(folders && { additionalDirectories: real }),
    ...(file !== undefined && { debugFile: file }),
  };
}

/** Checks against the folders of several servers, all of which hold. */
export async function checkAllPlaces(
  options: SessionOptions,
  all: readonly { readonly allowDirs: readonly string[] }[],
  closed: readonly ProtectedPath[],
): Promise<SessionOptions> {
  let checked = options;
  for (const { allowDirs } of all) checked = await checkPlaces(checked, allowDirs, closed);
  return checked;
}

export async function checkFolder(
  field: string,
  folder: string,
  roots: readonly string[],
  closed: readonly ProtectedPath[],
): Promise<string> {
  // Comes first, so that errors do not reveal files outside.
  const place = await checkInside(field, folder, roots, closed);
  const found = await stat(place).catch(otherwise(undefined, field));
  if (!found)
    throw invalidArgument(field, `${folder} does not exist on the server's machine. Name an existing folder.`);
  if (!found.isDirectory()) throw invalidArgument(field, `${folder} is a file. Name the folder that contains it.`);
  if (!isNormal(place)) {
    const problem = "begins or ends with white space, which Claude Code strips: it would use another folder.";
    throw invalidArgument(field, `${JSON.stringify(folder)} ${problem} Rename it.`);
  }
  return place;
}

/** Checks a file for Claude Code to write: the folder must exist, the file need not. */
export async function checkFile(
  field: string,
  file: string,
  roots: readonly string[],
  closed: readonly ProtectedPath[],
): Promise<string> {
  const place = join(await checkFolder(field, dirname(file), roots, closed), basename(file));
  const found = await stat(place).catch(otherwise(undefined, field));
  if (found?.isDirectory()) throw invalidArgument(field, `${file} is a folder. Name a file in it.`);
  // Follows a link to the file to be written; a broken link would be written through unchecked.
  if (found) return checkInside(field, place, roots, closed);
  const isLink = (await lstat(place).catch(otherwise(undefined, field))) !== undefined;
  if (isLink) throw invalidArgument(field, `${file} is a broken symbolic link. Name a file.`);
  return checkInside(field, place, roots, closed);
}

/** `path` need not exist. */
export async function checkInside(
  field: string,
  path: string,
  allowDirs: readonly string[],
  closed: readonly ProtectedPath[],
): Promise<string> {
  // Not resolved as text, because `..` behind a link goes up from the link's target.
  const real = await findRealPath(isAbsolute(path) ? path : resolve(path));
  const mayReveal = allowDirs.length === 0 || allowDirs.some((root) => isInside(resolve(path), root));
  if (real === undefined && mayReveal) fileAccess.check(path, field);
  const row = findProtection([resolve(path), ...(real === undefined ? [] : [real])], closed, "enter");
  if (row)
    throw invalidArgument(field, `${path} belongs to ${row.why}: sessions cannot work there. Name another path.`);
  if (allowDirs.length === 0) return path;
  if (real !== undefined && (await isAllowed(real, allowDirs))) return real;
  throw invalidArgument(field, `${path} is ${outside(allowDirs)}`);
}

/**
 * Refuses a transcript from a folder outside the allowed folders, wherever the session would continue. The error does not name
 * the folder, possibly another user's.
 */
export async function checkOrigin(field: string, folder: string | undefined, roots: readonly string[]): Promise<void> {
  if (roots.length === 0) return;
  const real = folder === undefined ? undefined : await findRealPath(isAbsolute(folder) ? folder : resolve(folder));
  if (real !== undefined && (await isAllowed(real, roots))) return;
  throw invalidArgument(field, `the session was in a folder ${outside(roots)}`);
}

function outside(allowDirs: readonly string[]): string {
  return `outside the folders this server allows (--allow-dir): ${allowDirs.join(", ")}.`;
}

/** `real` is already a real path; the file system is not asked again. */
export async function isAllowed(real: string, allowDirs: readonly string[]): Promise<boolean> {
  const roots = await Promise.all(allowDirs.map(async (root) => realpath(root).catch(() => root)));
  return roots.some((root) => isInside(real, root));
}

/** Maximum number of entries read, and of folders returned. */
const [MAX_ENTRIES, MAX_NAMED] = [5_000, 200];

/**
 * Completes a typed path to folders: within the allowed folders by their real paths, so that nothing outside is revealed. Lists
 * hidden folders only after a typed dot.
 */
export async function foldersBelow(typed: string, { allowDirs }: Pick<Confinement, "allowDirs">): Promise<string[]> {
  const roots = allowDirs.filter((root) => root.startsWith(typed));
  if (!isAbsolute(typed)) return typed === "" ? roots : [];
  const isWhole = typed.endsWith(sep);
  const [parent, begun] = isWhole ? [typed, ""] : [dirname(typed), basename(typed)];
  const below = await foldersIn(parent, begun, allowDirs).catch(() => []);
  return [...new Set([...roots, ...below])].slice(0, MAX_NAMED);
}

async function foldersIn(parent: string, begun: string, allowDirs: readonly string[]): Promise<string[]> {
  if (!(await isInsideAllowed(parent, allowDirs))) return [];
  const found: string[] = [];
  for (const entry of await fileAccess.run(parent, async () => entriesOf(parent, begun))) {
    if (found.length === MAX_NAMED) break;
    const path = join(parent, entry.name);
    if (entry.isDirectory() || (entry.isSymbolicLink() && (await isFolderInside(path, allowDirs)))) found.push(path);
  }
  return found.toSorted();
}

async function entriesOf(parent: string, begun: string): Promise<Dirent[]> {
  const found: Dirent[] = [];
  let looked = 0;
  // Leaving the loop closes the folder.
  for await (const entry of await opendir(parent)) {
    looked += 1;
    if (looked > MAX_ENTRIES) break;
    if (entry.name.startsWith(begun) && (!entry.name.startsWith(".") || begun.startsWith("."))) found.push(entry);
  }
  return found;
}

async function isFolderInside(path: string, allowDirs: readonly string[]): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === true && isInsideAllowed(path, allowDirs);
}

async function isInsideAllowed(path: string, allowDirs: readonly string[]): Promise<boolean> {
  return allowDirs.length === 0 || isAllowed(await realpath(path), allowDirs);
}
