import { lstat, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { invalidArgument } from "../../domain/error.ts";
import type { SessionOptions } from "../../domain/options.ts";

/**
 * What a path must be before a process is started with it. `roots` are the folders that are allowed; [] is any. Where
 * there are such, a path is given back as it really is: a link that is turned round afterwards leads nobody out. All throw
 * INVALID_ARGUMENT naming the field.
 */

/** The options with every folder and file in them checked. */
export async function checkPlaces(options: SessionOptions, roots: readonly string[]): Promise<SessionOptions> {
  const cwd = await checkFolder("cwd", options.cwd, roots);
  const { additionalDirectories: folders, debugFile } = options;
  const real: string[] = [];
  // Claude Code takes a relative one from its own folder.
  for (const [index, folder] of (folders ?? []).entries()) {
    real.push(await checkFolder(`additionalDirectories[${String(index)}]`, resolve(cwd, folder), roots));
  }
  const file = debugFile === undefined ? undefined : await checkFile("debugFile", resolve(cwd, debugFile), roots);
  if (roots.length === 0) return options;
  return {
    ...options,
    cwd,
    ...(folders && { additionalDirectories: real }),
    ...(file !== undefined && { debugFile: file }),
  };
}

export async function checkFolder(field: string, folder: string, roots: readonly string[]): Promise<string> {
  // First, so that nobody learns what there is outside.
  const place = await checkInside(field, folder, roots);
  const found = await stat(place).catch(() => undefined);
  if (!found)
    throw invalidArgument(field, `${folder} does not exist on the server's machine. Name an existing folder.`);
  if (!found.isDirectory()) throw invalidArgument(field, `${folder} is a file. Name the folder it lies in.`);
  return place;
}

/** A file that Claude Code is to write: it need not be there, its folder must. */
export async function checkFile(field: string, file: string, roots: readonly string[]): Promise<string> {
  const place = join(await checkFolder(field, dirname(file), roots), basename(file));
  const found = await stat(place).catch(() => undefined);
  if (found?.isDirectory()) throw invalidArgument(field, `${file} is a folder. Name a file in it.`);
  // A link is followed to what would be written; one that leads nowhere would be written through unchecked.
  if (found) return checkInside(field, place, roots);
  const isLink = await lstat(place).then(
    () => true,
    () => false,
  );
  if (isLink) throw invalidArgument(field, `${file} is a link that leads nowhere. Name a file.`);
  return place;
}

/** It need not exist. */
export async function checkInside(field: string, path: string, allowDirs: readonly string[]): Promise<string> {
  if (allowDirs.length === 0) return path;
  const real = await realOf(path);
  if (await isAllowed(real, allowDirs)) return real;
  throw invalidArgument(field, `${path} is ${outside(allowDirs)}`);
}

/**
 * What was said in a folder is no more for everybody than the folder is, wherever it would go on. The folder is not told:
 * it may be somebody else's.
 */
export async function checkOrigin(field: string, folder: string | undefined, roots: readonly string[]): Promise<void> {
  if (roots.length === 0 || (folder !== undefined && (await isAllowed(await realOf(folder), roots)))) return;
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

/** Of what is not there, where it would be: its folder's real path, and its name in it. */
async function realOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const folder = dirname(path);
    return folder === path ? path : join(await realOf(folder), basename(path));
  }
}

function isInside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !way.startsWith(sep) && !/^[A-Za-z]:/.test(way));
}
