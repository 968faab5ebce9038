import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { normalPath } from "../../security/normal-path.ts";
import { realPathOf } from "../../security/paths.ts";
import { MAX_COMMAND_LENGTH, MAX_WORDS, MOVES, STANDS_FOR, whyUnread, wordsOf } from "../../security/shell/unread.ts";
import type { Folders } from "./places.ts";
import type { JsonObject } from "../../domain/json.ts";

/** The files that a shell command could mean, as far as its text shows them. */

/** Paths that a command could mean. Undefined where its text does not show them. */
export async function mentionedPaths(command: string, folders: Folders): Promise<readonly string[] | undefined> {
  return whyUnread(command) === undefined ? pathsIn(command, folders) : undefined;
}

/** Paths that its text shows, also where it does not show them all. */
export async function pathsIn(command: string, folders: Folders): Promise<readonly string[]> {
  if (command.length > MAX_COMMAND_LENGTH) return [];
  const moved = folderOf(command, folders);
  const here = new Set(wordsOf(beforeMoves(command)));
  const words = wordsOf(command).filter(
    (word) => mayName(word) && (moved !== undefined || here.has(word) || isWhole(word)),
  );
  const paths = await Promise.all(
    words.map(async (word, at) => {
      const froms = [...(here.has(word) ? [folders.cwd] : []), ...(moved === undefined ? [] : [moved])];
      const named = new Set(
        (froms.length > 0 ? froms : [folders.cwd]).map((cwd) => normalPath(word, { ...folders, cwd })),
      );
      const known = [...named].filter((path) => path !== undefined);
      // Looks at the disk are limited, as the number of words is not.
      return at < MAX_WORDS ? [...known, ...(await Promise.all(known.map(realPathOf)))] : known;
    }),
  );
  return [...new Set(paths.flat().filter((path) => path !== undefined))];
}

/** Accepts a word that begins with plain text, a glob or `~`. Later expansions lie below the folders before them. */
function mayName(word: string): boolean {
  return !STANDS_FOR.test(word.slice(0, 1)) || /^[*?[]/.test(word) || /^~(?:\/|$)/.test(word);
}

/** The commands whose relative words count from the session's folder: -C is for its own command alone. */
function beforeMoves(command: string): string {
  const commands = command.split(/[;&|\n]/);
  const moves = commands.map((each) => each.match(MOVES) ?? []);
  const end = moves.findIndex((found) => found.some((move) => move !== "-C"));
  return commands.filter((_, at) => (end < 0 || at < end) && moves[at]?.length === 0).join("\n");
}

/** The folder that relative words count from; undefined where it is unknown. */
function folderOf(command: string, { cwd }: Folders): string | undefined {
  const moves = command.match(MOVES) ?? [];
  if (moves.length === 0) return cwd;
  const [, way] =
    /^\s*cd\s+([^\s"'$`*?[\]{}\\!~;&|<>()-][^\s"'$`*?[\]{}\\!;&|<>()]*)\s*(?:&&|[;\n])/.exec(command) ?? [];
  return moves.length === 1 && way !== undefined ? resolve(cwd, way) : undefined;
}

function isWhole(word: string): boolean {
  return /^(?:[/~]|[A-Za-z]:[\\/])/.test(word);
}

/** The paths that a tool could take from its input, for tools whose path fields are unknown. */

/** Texts in all, and characters of one that can still be a path. */
const [MAX_TEXTS, MAX_PATH_LENGTH] = [2_000, 4_096];

/** As they are named and as they really are. Undefined where there are too many to look at. */
export async function mayBePaths(input: JsonObject, folders: Folders): Promise<string[] | undefined> {
  const texts = [...new Set(textsOf(input))].filter((text) => text.length <= MAX_PATH_LENGTH).map(withoutScheme);
  if (texts.length > MAX_TEXTS) return undefined;
  const paths = await Promise.all(
    texts.map(async (text) => {
      const named = normalPath(text, folders);
      const real = named === undefined ? undefined : await realPathOf(named);
      return [named, real].filter((path) => path !== undefined);
    }),
  );
  return [...new Set(paths.flat())];
}

/** Without recursion: an input can be nested deeply. */
function textsOf(input: JsonObject): string[] {
  const texts: string[] = [];
  const left: unknown[] = [input];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === "string") texts.push(value);
    else if (typeof value === "object" && value !== null) for (const each of Object.values(value)) left.push(each);
  }
  return texts;
}

function withoutScheme(text: string): string {
  if (!/^\s*file:/i.test(text)) return text;
  try {
    return fileURLToPath(text.trim());
  } catch {
    return text;
  }
}
