import { isAbsolute, join, normalize, resolve } from "node:path";

/** Brings a path into the form that Claude Code will use, in which the path is judged. Pure; `findRealPath` resolves links. */

/** Absolute folders that relative paths and `~` count from. */
export interface Bases {
  readonly cwd: string;
  readonly home: string;
}

/**
 * Returns the absolute path that Claude Code makes of a path in a request: cuts off white space at both ends like `trim`
 * (no-break and other Unicode spaces too, but no zero-width ones), and replaces `~` by the home folder. Leaves Unicode
 * unchanged, as Claude Code does. Returns `undefined` for a path to refuse: empty, with a NUL, or changed by a second
 * normalization, for example if white space ends the path after resolving `.` and `..`.
 */
export function normalPath(named: string, { cwd, home }: Bases): string | undefined {
  const text = named.trim();
  if (text === "" || text.includes("\0")) return undefined;
  // `resolve` leaves no slash at the end, except for a root.
  const whole = resolve(expanded(text, cwd, home));
  return isNormal(whole) ? whole : undefined;
}

/** True if Claude Code uses the absolute path unchanged. */
export function isNormal(path: string): boolean {
  return path.trim() === path && !path.includes("\0");
}

function expanded(text: string, cwd: string, home: string): string {
  if (text === "~") return normalize(home);
  // Uses `join`, because `~//etc` also begins at the home folder.
  if (text.startsWith("~/")) return join(home, text.slice(2));
  const drive = process.platform === "win32" ? /^\/([A-Za-z])(?=\/|$)/.exec(text)?.[1] : undefined;
  if (drive !== undefined) return normalize(`${drive.toUpperCase()}:${text.slice(2) || "\\"}`);
  return isAbsolute(text) ? normalize(text) : resolve(cwd, text);
}

/** Invisible characters, and others that look like a space: control, format and bidirectional marks, fillers, blanks. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}\u2800]/gu;
const BLANK = /\p{Zs}/gu;

/** True if the path has characters that hide a difference from another path. */
export function hasUnseen(path: string): boolean {
  return path.search(UNSEEN) !== -1 || path.replaceAll(" ", "").search(BLANK) !== -1;
}

/**
 * Returns a text that is equal for all paths that any file system could take for one: some ignore case (APFS, NTFS), the
 * Unicode form (APFS, HFS+) or invisible characters (HFS+). Use the text only to deny, because two files can have equal texts.
 */
export function foldedPath(path: string): string {
  const visible = path.replaceAll(UNSEEN, "").replaceAll(BLANK, " ").normalize("NFC");
  // Upper case first: some small letters are equal only in upper case, such as the long s.
  return visible.toUpperCase().toLowerCase().normalize("NFC");
}

/**
 * Returns `foldedPath`, and a spelling without the parts of names that Windows ignores: dots and spaces at the end, and a
 * stream's name.
 */
export function foldedSpellings(path: string): string[] {
  const folded = foldedPath(path);
  const drive = /^[a-z]:/.exec(folded)?.[0] ?? "";
  const bare = drive + folded.slice(drive.length).replaceAll(/(?<=[^\\/]):[^\\/]*|(?<=[^\\/. ])[. ]+(?=[\\/]|$)/g, "");
  return bare === folded ? [folded] : [folded, bare];
}
