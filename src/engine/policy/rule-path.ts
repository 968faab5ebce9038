import { foldedPath, foldedSpellings } from "../../security/normal-path.ts";

/** Matches rules for paths, written like a .gitignore: a match of a folder covers everything in it. */

export interface Bases {
  /** Names of the session's folder: the given path, and the real path if different. */
  readonly cwd: readonly string[];
  readonly home: string;
}

/**
 * True if `path` matches: `//x` is absolute, `~/x` in the home folder, `/x`, `./x` and `x/y` in the session's folder, `x` at
 * any depth in the folder. With `widely`, spellings that a file system could take for the path match too.
 */
export function matchesPath(content: string, path: string, bases: Bases, widely: boolean): boolean {
  const { pattern, starts } = rootOf(content, bases);
  const expression = toExpression(pattern, widely);
  const spellings = widely ? foldedSpellings(path) : [path];
  return starts.some((start) =>
    spellings.some((spelling) => {
      const below = pathBelow(slashed(widely ? foldedPath(start) : start), slashed(spelling));
      return below !== undefined && expression.test(below);
    }),
  );
}

function rootOf(content: string, { cwd, home }: Bases): { pattern: string; starts: readonly string[] } {
  if (content.startsWith("//")) return { pattern: content.slice(2), starts: ["/"] };
  if (content === "~") return { pattern: "**", starts: [home] };
  if (content.startsWith("~/")) return { pattern: content.slice(2), starts: [home] };
  if (content.startsWith("/")) return { pattern: content.slice(1), starts: cwd };
  if (content.startsWith("./")) return { pattern: content.slice(2), starts: cwd };
  const isName = !content.slice(0, -1).includes("/");
  return { pattern: isName ? `**/${content}` : content, starts: cwd };
}

/** Converts `C:\x` to `/c/x`. */
export function slashed(path: string): string {
  const drive = /^([A-Za-z]):(?=[\\/]|$)/.exec(path)?.[1];
  if (drive === undefined) return path;
  return `/${drive.toLowerCase()}${path.slice(2).replaceAll("\\", "/")}`;
}

/** Returns the path below `start`: "" for `start` itself, `undefined` for any path outside. */
export function pathBelow(start: string, path: string): string | undefined {
  const folder = start.endsWith("/") ? start : `${start}/`;
  if (`${path}/` === folder) return "";
  return path.startsWith(folder) ? path.slice(folder.length) : undefined;
}

function toExpression(pattern: string, widely: boolean): RegExp {
  const parts = pattern
    .split("/")
    .filter((part, index, all) => part !== "" && !(part === "**" && all[index - 1] === "**"));
  const source = parts.map((part, index) => {
    const isLast = index === parts.length - 1;
    if (part === "**") return isLast ? ".*" : "(?:[^/]+/)*";
    return `${toSegment(part, widely)}${isLast ? "(?:/.*)?" : "/"}`;
  });
  return new RegExp(`^${source.join("")}$`, widely ? "isu" : "su");
}

/** `*` and `?` stay in a folder, `[a-z]` is a set of characters. */
function toSegment(part: string, widely: boolean): string {
  const set = /\[([!^]?)([^\]/]+)\]/g;
  let [source, at] = ["", 0];
  for (const { 0: whole, 1: not = "", 2: members = "", index } of part.matchAll(set)) {
    source += plain(part.slice(at, index), widely);
    source += `[${not === "" ? "" : "^/"}${members.replaceAll(/[\\\]^[]/g, "\\$&")}]`;
    at = index + whole.length;
  }
  return source + plain(part.slice(at), widely);
}

function plain(text: string, widely: boolean): string {
  return (widely ? foldedPath(text) : text)
    .replaceAll(/[.+^${}()|[\]\\/]/g, "\\$&")
    .replaceAll(/\*+/g, "[^/]*")
    .replaceAll("?", "[^/]");
}
