import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { lstat, readlink, realpath } from "./files/limited.ts";

/** Where a path really lies: the one place that decides it. */

/** A chain of links that is longer leads in a circle. */
const MAX_LINKS = 40;

/**
 * The real path of an absolute one. Of what does not exist, where it would be made: the real path of the nearest folder,
 * and the rest; a link that leads nowhere is followed to what would be written. Undefined where it is unknown.
 */
export async function realPathOf(path: string, links = 0): Promise<string | undefined> {
  if (links > MAX_LINKS) return undefined;
  try {
    return await realpath(path);
  } catch (error) {
    if (!isMissing(error)) return undefined;
  }
  const folder = dirname(path);
  if (folder === path) return undefined;
  const real = await realPathOf(folder, links);
  if (real === undefined) return undefined;
  const place = join(real, basename(path));
  const isLink = await lstat(place).then(
    (found) => found.isSymbolicLink(),
    () => false,
  );
  if (!isLink) return place;
  const target = await readlink(place).catch(() => undefined);
  return target === undefined ? undefined : realPathOf(resolve(real, target), links + 1);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** Of two real paths, by their text: whether `path` is `root` or lies below it. */
export function isInside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
