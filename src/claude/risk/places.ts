import { lstat, readlink, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { JsonObject } from "../../domain/json.ts";
import type { Place } from "./risk.ts";

/** Where the paths lie that a request names: the part of judging it that asks the file system. */

/** What a session works in. */
export interface Folders {
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  readonly home: string;
}

/** The places, and the session's own folder as it really is. */
export async function placesOf(named: readonly string[], folders: Folders): Promise<{ places: Place[]; cwd: string }> {
  const { additionalDirectories: others, cwd, home } = folders;
  const roots = await Promise.all(
    [resolve(cwd), ...others.map((folder) => resolve(cwd, folder))].map(async (folder) => realPlace(folder)),
  );
  const places = named.map(async (path): Promise<Place> => {
    const whole = absolute(path, cwd, home);
    const real = await realPlace(whole);
    const isInside = real !== undefined && roots.some((root) => root !== undefined && isBelow(real, root));
    return { named: whole, real, isInside, isRelative: !isAbsolute(path) };
  });
  return { places: await Promise.all(places), cwd: roots[0] ?? cwd };
}

/** What a tool for files names; undefined where that cannot be told. */
export function namedPaths(toolName: string, input: JsonObject): string[] | undefined {
  switch (toolName) {
    case "Glob":
      return ofGlob(input);
    case "Grep":
    case "LS":
      return input["path"] === undefined ? ["."] : texts(input["path"]);
    case "NotebookEdit":
    case "NotebookRead":
      return texts(input["notebook_path"]);
    default:
      return texts(input["file_path"]);
  }
}

function texts(value: unknown): string[] | undefined {
  return typeof value === "string" && value !== "" && !value.includes("\0") ? [value] : undefined;
}

/** A pattern can lead out of the folder that it counts from. */
function ofGlob({ path = ".", pattern }: JsonObject): string[] | undefined {
  const folder = texts(path)?.[0];
  if (folder === undefined || typeof pattern !== "string" || pattern.includes("\0")) return undefined;
  const before = pattern.split(/[*?[{(!]/)[0] ?? "";
  if (pattern.slice(before.length).includes("..")) return undefined;
  const start = before.slice(0, before.lastIndexOf("/") + 1);
  if (start === "") return [folder];
  return [isAbsolute(start) || start.startsWith("~") ? start : join(folder, start)];
}

/** As Claude Code reads it: ~ is the home folder. */
function absolute(path: string, cwd: string, home: string): string {
  if (path === "~" || path.startsWith("~/")) return resolve(home, path.slice(2));
  return resolve(cwd, path);
}

/** A chain of links that is longer leads in a circle. */
const LINKS_MOST = 40;

/** Of what is not there, where it would be made: the real path of the nearest folder, and the rest. */
async function realPlace(path: string, links = 0): Promise<string | undefined> {
  if (links > LINKS_MOST) return undefined;
  try {
    return await realpath(path);
  } catch (error) {
    if (!isMissing(error)) return undefined;
  }
  const folder = dirname(path);
  if (folder === path) return undefined;
  const real = await realPlace(folder, links);
  if (real === undefined) return undefined;
  const place = join(real, basename(path));
  // A link that leads nowhere is written through all the same.
  const isLink = await lstat(place).then(
    (found) => found.isSymbolicLink(),
    () => false,
  );
  if (!isLink) return place;
  const target = await readlink(place).catch(() => undefined);
  return target === undefined ? undefined : realPlace(resolve(real, target), links + 1);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

function isBelow(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
