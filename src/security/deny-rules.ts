import { KEPT_BY_CLAUDE, type ProtectedPath } from "./protected-paths.ts";

/**
 * Writes the table of protected paths as permission rules of Claude Code, which hold in every mode, for links, for @file in a
 * prompt and for paths that Claude Code recognizes in Bash commands. A rule cannot say "all but": `KEPT_BY_CLAUDE` is left out
 * by patterns for every other name.
 */
export function denyRulesOf(table: readonly ProtectedPath[]): string[] {
  const rules = table.flatMap((row) => {
    const places = [...new Set([row.path, row.real])].map(asPattern);
    return places.flatMap((place) => rulesFor(place, row));
  });
  return [...new Set(rules)];
}

function rulesFor(place: string, { extent, isOwn }: ProtectedPath): string[] {
  if (extent === "prefix") return readAndEditRules(`${place}*`);
  if (!isOwn) return readAndEditRules(place);
  return [
    ...patternsExcept(KEPT_BY_CLAUDE).flatMap((name) => readAndEditRules(`${place}/${name}`)),
    // Transcripts of all sessions.
    `Read(${place}/projects/**/*.jsonl)`,
    `Read(${place}/projects/*/*.*)`,
    ...patternsExcept(["memory"]).map((name) => `Edit(${place}/projects/*/${name})`),
  ];
}

function readAndEditRules(pattern: string): string[] {
  return [`Read(${pattern})`, `Edit(${pattern})`];
}

/** Writes a path as a pattern. `//` is the root of the file system; a drive of Windows is a folder there. */
function asPattern(path: string): string {
  const place = path.replace(/^([A-Za-z]):/, (_, drive: string) => `/${drive.toLowerCase()}`).replace(/^\/*/, "//");
  const parts = process.platform === "win32" ? place.replaceAll("\\", "/") : place.replaceAll("\\", "\\\\");
  return parts.replaceAll(/[*?[\]{}()!#]/g, "\\$&");
}

/**
 * Returns patterns for every name but `names`. Names with a bracket and the like do not match either, but Claude Code uses none
 * there.
 */
function patternsExcept(names: readonly string[], beginning = ""): string[] {
  const nexts = names
    .filter((name) => name.length > beginning.length && name.startsWith(beginning))
    .map((name) => name.charAt(beginning.length));
  const own = beginning === "" || names.includes(beginning) ? [] : [beginning];
  if (nexts.length === 0) return [...own, `${beginning}?*`];
  const unique = [...new Set(nexts)];
  const others = [`${beginning}[${setWithout(unique)}]*`, ...(unique.includes("-") ? [] : [`${beginning}-*`])];
  return [...own, ...others, ...unique.flatMap((next) => patternsExcept(names, beginning + next))];
}

/** Characters with a meaning in a set. */
const SPECIAL = ["!", "-", "/", "[", "\\", "]", "^"];

/**
 * Returns the members of a set of every character but `left`. A negated set would not do, because Claude Code reads `!` in its
 * own way.
 */
function setWithout(left: readonly string[]): string {
  const codes = [...SPECIAL, ...left, ...left.map((each) => each.toUpperCase())].map((each) => each.charCodeAt(0));
  const sorted = [...new Set(codes)].toSorted((one, other) => one - other);
  const starts = [SPACE, ...sorted.map((code) => code + 1)];
  const ranges = starts.flatMap((start, index) => {
    const end = (sorted[index] ?? LAST + 1) - 1;
    return end < start ? [] : [`${String.fromCharCode(start)}-${String.fromCharCode(end)}`];
  });
  return ranges.join("");
}

const SPACE = 0x20;
const LAST = 0xff_ff;
