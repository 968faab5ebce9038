import type { Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { invalidArgument } from "../../domain/error.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { fileAccess, lstat, otherwise, realpath, stat } from "../../security/files/limited.ts";
import { isNormal } from "../../security/normal-path.ts";
import { isInside, realPathOf } from "../../security/paths.ts";
import { protectionOf, type ProtectedPath } from "../../security/protected-paths.ts";
import type { Confinement } from "../../domain/principal.ts";

/**
 * Checks paths before a process is started with them. `roots` are the allowed folders; [] allows any. With roots the real path is
 * returned, so that a link that changes afterwards has no effect. `closed` are the paths that no session may reach. All throw
 * INVALID_ARGUMENT naming the field.
 */

/** The options with every folder and file in them checked. */
export async function checkPlaces(
  options: SessionOptions,
  roots: readonly string[],
  closed: readonly ProtectedPath[],
): Promise<SessionOptions> {
  const cwd = await checkFolder("cwd", options.cwd, roots, closed);
  const { additionalDirectories: folders, debugFile } = options;
  const real: string[] = [];
  // Claude Code takes a relative one from its own folder.
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

/** The same by the folders of several servers, all of which hold. */
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
  // First, so that errors do not reveal what exists outside.
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

/** A file that Claude Code is to write: it need not be there, its folder must. */
export async function checkFile(
  field: string,
  file: string,
  roots: readonly string[],
  closed: readonly ProtectedPath[],
): Promise<string> {
  const place = join(await checkFolder(field, dirname(file), roots, closed), basename(file));
  const found = await stat(place).catch(otherwise(undefined, field));
  if (found?.isDirectory()) throw invalidArgument(field, `${file} is a folder. Name a file in it.`);
  // A link is followed to what would be written; one that leads nowhere would be written through unchecked.
  if (found) return checkInside(field, place, roots, closed);
  const isLink = (await lstat(place).catch(otherwise(undefined, field))) !== undefined;
  if (isLink) throw invalidArgument(field, `${file} is a broken symbolic link. Name a file.`);
  return checkInside(field, place, roots, closed);
}

/** It need not exist. */
export async function checkInside(
  field: string,
  path: string,
  allowDirs: readonly string[],
  closed: readonly ProtectedPath[],
): Promise<string> {
  // Not resolved by its text: dots behind a link go up from where the link leads.
  const real = await realPathOf(isAbsolute(path) ? path : resolve(path));
  const isTold = allowDirs.length === 0 || allowDirs.some((root) => isInside(resolve(path), root));
  if (real === undefined && isTold) fileAccess.check(path, field);
  const row = protectionOf([resolve(path), ...(real === undefined ? [] : [real])], closed, "enter");
  if (row)
    throw invalidArgument(field, `${path} belongs to ${row.why}: sessions cannot work there. Name another path.`);
  if (allowDirs.length === 0) return path;
  if (real !== undefined && (await isAllowed(real, allowDirs))) return real;
  throw invalidArgument(field, `${path} is ${outside(allowDirs)}`);
}

/**
 * A transcript of a folder outside of the allowed ones may not be continued, in any folder. The error does not name the folder,
 * which may belong to another user.
 */
export async function checkOrigin(field: string, folder: string | undefined, roots: readonly string[]): Promise<void> {
  if (roots.length === 0) return;
  const real = folder === undefined ? undefined : await realPathOf(isAbsolute(folder) ? folder : resolve(folder));
  if (real !== undefined && (await isAllowed(real, roots))) return;
  throw invalidArgument(field, `the session was in a folder ${outside(roots)}`);
}

function outside(allowDirs: readonly string[]): string {
  return `outside the folders this server allows (--allow-dir): ${allowDirs.join(", ")}.`;
}

/** Of a path as it really is; the file system is not asked about it again. */
export async function isAllowed(real: string, allowDirs: readonly string[]): Promise<boolean> {
  const roots = await Promise.all(allowDirs.map(async (root) => realpath(root).catch(() => root)));
  return roots.some((root) => isInside(real, root));
}

/** Entries of a folder that are read, and folders of them that are named. */
const [MAX_ENTRIES, MAX_NAMED] = [5_000, 200];

/**
 * Folders that complete a typed path: within the allowed folders by their real paths, so that nothing outside is revealed. Hidden
 * ones only after a typed dot.
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
  // It closes itself when the loop is left.
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
