import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { lstat, readlink, realpath } from "./files/limited.ts";

/** Resolves paths. The only module that decides where a path really lies. */

/** Maximum length of a chain of links. A longer chain leads in a circle. */
const MAX_LINKS = 40;

/**
 * Returns the real path of an absolute path. For a missing file, returns the place of its creation: the real path of the
 * nearest folder, and the rest; follows a dangling link to its target. `undefined` if unknown.
 */
export async function findRealPath(path: string, links = 0): Promise<string | undefined> {
  if (links > MAX_LINKS) return undefined;
  try {
    return await realpath(path);
  } catch (error) {
    if (!isMissing(error)) return undefined;
  }
  const folder = dirname(path);
  if (folder === path) return undefined;
  const real = await findRealPath(folder, links);
  if (real === undefined) return undefined;
  const place = join(real, basename(path));
  const isLink = await lstat(place).then(
    (found) => found.isSymbolicLink(),
    () => false,
  );
  if (!isLink) return place;
  const target = await readlink(place).catch(() => undefined);
  return target === undefined ? undefined : findRealPath(resolve(real, target), links + 1);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** True if the real path `path` is `root` or lies below, judged by their text. */
export function isInside(path: string, root: string): boolean {
  const rest = relative(root, path);
  return rest === "" || (rest !== ".." && !rest.startsWith(`..${sep}`) && !isAbsolute(rest));
}
