import { lstat, realpath, stat } from "node:fs/promises";
import { dirname, relative, sep } from "node:path";
import { invalidArgument } from "../../domain/error.ts";

/** What a path must be before a process is started with it. `roots` are the folders that are allowed; [] is any. */

export async function checkFolder(field: string, folder: string, roots: readonly string[]): Promise<void> {
  const found = await stat(folder).catch(() => undefined);
  if (!found)
    throw invalidArgument(field, `${folder} does not exist on the server's machine. Name an existing folder.`);
  if (!found.isDirectory()) throw invalidArgument(field, `${folder} is a file. Name the folder it lies in.`);
  await checkInside(field, folder, roots);
}

/** A file that Claude Code is to write: it need not be there, its folder must. */
export async function checkFile(field: string, file: string, roots: readonly string[]): Promise<void> {
  await checkFolder(field, dirname(file), roots);
  const found = await stat(file).catch(() => undefined);
  if (found?.isDirectory()) throw invalidArgument(field, `${file} is a folder. Name a file in it.`);
  // A link is followed to what would be written; one that leads nowhere would be written through unchecked.
  if (found) return checkInside(field, file, roots);
  const isLink = await lstat(file).then(
    () => true,
    () => false,
  );
  if (isLink) throw invalidArgument(field, `${file} is a link that leads nowhere. Name a file.`);
}

export async function checkInside(field: string, path: string, allowDirs: readonly string[]): Promise<void> {
  if (allowDirs.length === 0) return;
  const real = await realpath(path);
  const roots = await Promise.all(allowDirs.map(async (root) => realpath(root).catch(() => root)));
  if (!roots.some((root) => isInside(real, root))) {
    throw invalidArgument(
      field,
      `${path} is outside the folders this server allows (--allow-dir): ${allowDirs.join(", ")}.`,
    );
  }
}

function isInside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !way.startsWith(sep) && !/^[A-Za-z]:/.test(way));
}
