import { isAbsolute, join, normalize, resolve } from "node:path";

/**
 * The form of a path in which it is judged: the one in which Claude Code will use it. Pure; where the path then really
 * lies, `realPathOf` says.
 */

/** What a relative path and a `~` count from; both absolute. */
export interface Bases {
  readonly cwd: string;
  readonly home: string;
}

/**
 * The absolute path that Claude Code makes of what a request names: white space at both ends is cut off as `trim` does it
 * (no-break and other Unicode spaces too, but no zero-width ones), `~` is the home folder. Unicode is left as it is, since
 * Claude Code does so. Undefined for what must be refused: nothing at all, a NUL, or a path that changes when it is
 * normalised again, such as one that ends in white space once its `.` and `..` are resolved.
 */
export function normalPath(named: string, { cwd, home }: Bases): string | undefined {
  const text = named.trim();
  if (text === "" || text.includes("\0")) return undefined;
  // As `resolve` has it: no slash at the end but that of a root.
  const whole = resolve(expanded(text, cwd, home));
  return isNormal(whole) ? whole : undefined;
}

/** Whether Claude Code takes an absolute path as it stands. */
export function isNormal(path: string): boolean {
  return path.trim() === path && !path.includes("\0");
}

function expanded(text: string, cwd: string, home: string): string {
  if (text === "~") return normalize(home);
  // Joined, not resolved: of `~//etc` the home folder is the beginning as well.
  if (text.startsWith("~/")) return join(home, text.slice(2));
  const drive = process.platform === "win32" ? /^\/([A-Za-z])(?=\/|$)/.exec(text)?.[1] : undefined;
  if (drive !== undefined) return normalize(`${drive.toUpperCase()}:${text.slice(2) || "\\"}`);
  return isAbsolute(text) ? normalize(text) : resolve(cwd, text);
}

/** Invisible characters, and those that look like a space: control, format and bidirectional marks, fillers, other blanks. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}\u2800]/gu;
const BLANK = /\p{Zs}/gu;

/** Whether the path has characters by which it looks like another one. */
export function hasUnseen(path: string): boolean {
  return path.search(UNSEEN) !== -1 || path.replaceAll(" ", "").search(BLANK) !== -1;
}

/**
 * What is equal to whatever a file system could take for the same path: one takes no notice of case (APFS, NTFS), one of the
 * Unicode form (APFS, HFS+), one of characters that cannot be seen (HFS+). Only for what denies: two files can be meant.
 */
export function foldedPath(path: string): string {
  const visible = path.replaceAll(UNSEEN, "").replaceAll(BLANK, " ").normalize("NFC");
  // Upper case first: some small letters are the same only there, such as the long s.
  return visible.toUpperCase().toLowerCase().normalize("NFC");
}

/** The same, and without what Windows leaves out of each name: dots and spaces at its end, and the name of a stream. */
export function foldedSpellings(path: string): string[] {
  const folded = foldedPath(path);
  const drive = /^[a-z]:/.exec(folded)?.[0] ?? "";
  const bare = drive + folded.slice(drive.length).replaceAll(/(?<=[^\\/]):[^\\/]*|(?<=[^\\/. ])[. ]+(?=[\\/]|$)/g, "");
  return bare === folded ? [folded] : [folded, bare];
}
