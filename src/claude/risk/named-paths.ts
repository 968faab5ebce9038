import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { hasUnseen, normalPath } from "../../security/normal-path.ts";
import { isInside, findRealPath } from "../../security/paths.ts";
import type { ProtectedPath } from "../../security/protected-paths.ts";
import type { LocatedPath } from "./risk.ts";

/** Locates the paths named by a request: the part of judging that asks the file system. */

/** Folders of a session. */
export interface Folders {
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  readonly home: string;
  /** Paths closed to file tools. */
  readonly closed: readonly ProtectedPath[];
  /** Folders of `PATH`, searched for programs. */
  readonly programs: readonly string[];
}

export interface LocatedPaths {
  readonly places: readonly LocatedPath[];
  /** Paths that cannot be normalized, and so cannot be judged. */
  readonly refused: readonly string[];
  /** Real path of the session's folder. */
  readonly cwd: string;
}

export async function locatePaths(named: readonly string[], folders: Folders): Promise<LocatedPaths> {
  const { additionalDirectories: others, cwd, home, programs } = folders;
  const realOf = async (paths: readonly string[]) =>
    Promise.all(paths.map(async (path) => findRealPath(resolve(cwd, path))));
  const known = named.length === 0 ? [] : [home, ...programs];
  const [[ownRoot, ...otherRoots], [realHome, ...onPath]] = await Promise.all([
    realOf([cwd, ...others]),
    realOf(known),
  ]);
  const roots = [ownRoot, ...otherRoots].filter((root) => root !== undefined);
  const placeOf = async (path: string): Promise<LocatedPath | string> => {
    const whole = normalPath(path, folders);
    if (whole === undefined) return path;
    const real = await findRealPath(whole);
    const root = real === undefined ? undefined : roots.find((each) => isInside(real, each));
    const hidden = real === undefined || realHome === undefined ? undefined : hiddenIn(realHome, real);
    return {
      named: whole,
      real,
      isInside: root !== undefined,
      isRelative: !isAbsolute(path.trim()),
      isOnPath: real !== undefined && onPath.includes(dirname(real)),
      isOfHome: hidden !== undefined && !roots.some((each) => isInside(each, hidden)),
      isUnseen:
        hasUnseen(root === undefined || real === undefined ? whole : relative(root, real)) ||
        hasUnseen(basename(whole)),
    };
  };
  const found = await Promise.all(named.map(placeOf));
  return {
    places: found.filter((place) => typeof place !== "string"),
    refused: found.filter((place) => typeof place === "string"),
    cwd: ownRoot ?? cwd,
  };
}

/** Returns the hidden file or folder directly in `home` that is or contains `path`. */
function hiddenIn(home: string, path: string): string | undefined {
  if (!isInside(path, home)) return undefined;
  const [first = ""] = relative(home, path).split(sep);
  return first.startsWith(".") ? join(home, first) : undefined;
}
