import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { normalPath } from "../../security/normal-path.ts";
import { findRealPath } from "../../security/paths.ts";
import {
  MAX_COMMAND_LENGTH,
  MAX_WORDS,
  MOVING_WORDS,
  SPECIAL_CHARACTERS,
  whyUnclear,
  splitWords,
} from "../../security/shell/unclear-paths.ts";
import type { Folders } from "./named-paths.ts";
import type { JsonObject } from "../../domain/json.ts";

/** Finds the files that a shell command could mean, as far as the text shows. */

/** Returns the paths that a command could mean; `undefined` if the text does not show all of them (`whyUnclear`). */
export async function findMentionedPaths(command: string, folders: Folders): Promise<readonly string[] | undefined> {
  return whyUnclear(command) === undefined ? findShownPaths(command, folders) : undefined;
}

/** Returns the paths visible in the text, even if the command may use others as well. */
export async function findShownPaths(command: string, folders: Folders): Promise<readonly string[]> {
  if (command.length > MAX_COMMAND_LENGTH) return [];
  const moved = findMovedFolder(command, folders);
  const here = new Set(splitWords(unmovedCommands(command)));
  const words = splitWords(command).filter(
    (word) => mayName(word) && (moved !== undefined || here.has(word) || isAbsoluteWord(word)),
  );
  const paths = await Promise.all(
    words.map(async (word, at) => {
      const froms = [...(here.has(word) ? [folders.cwd] : []), ...(moved === undefined ? [] : [moved])];
      const named = new Set(
        (froms.length > 0 ? froms : [folders.cwd]).map((cwd) => normalPath(word, { ...folders, cwd })),
      );
      const known = [...named].filter((path) => path !== undefined);
      // Resolves only the first `MAX_WORDS` words on disk, because a command may have any number of words.
      return at < MAX_WORDS ? [...known, ...(await Promise.all(known.map(findRealPath)))] : known;
    }),
  );
  return [...new Set(paths.flat().filter((path) => path !== undefined))];
}

/**
 * True if the word begins with plain text, a glob or `~`, so that at least its folder is visible. Other expansions may follow:
 * the path then lies below the folders before them.
 */
function mayName(word: string): boolean {
  return !SPECIAL_CHARACTERS.test(word.slice(0, 1)) || /^[*?[]/.test(word) || /^~(?:\/|$)/.test(word);
}

/**
 * Returns the commands whose relative words count from the session's folder: all before the first `cd` or the like, except
 * those with `-C`.
 */
function unmovedCommands(command: string): string {
  const commands = command.split(/[;&|\n]/);
  const moves = commands.map((each) => each.match(MOVING_WORDS) ?? []);
  const end = moves.findIndex((found) => found.some((move) => move !== "-C"));
  return commands.filter((_, at) => (end < 0 || at < end) && moves[at]?.length === 0).join("\n");
}

/** Returns the folder for relative words: `cwd`, or the target of a single leading `cd`; `undefined` if unknown. */
function findMovedFolder(command: string, { cwd }: Folders): string | undefined {
  const moves = command.match(MOVING_WORDS) ?? [];
  if (moves.length === 0) return cwd;
  const [, target] =
    /^\s*cd\s+([^\s"'$`*?[\]{}\\!~;&|<>()-][^\s"'$`*?[\]{}\\!;&|<>()]*)\s*(?:&&|[;\n])/.exec(command) ?? [];
  return moves.length === 1 && target !== undefined ? resolve(cwd, target) : undefined;
}

function isAbsoluteWord(word: string): boolean {
  return /^(?:[/~]|[A-Za-z]:[\\/])/.test(word);
}

/** Finds the paths that a tool with unknown path fields could take from its input. */

/** Maximum number of texts, and maximum length of a text that can be a path, characters. */
const [MAX_TEXTS, MAX_PATH_LENGTH] = [2_000, 4_096];

/** Returns the paths as named, and their real paths. `undefined` for more than `MAX_TEXTS` texts. */
export async function findPossiblePaths(input: JsonObject, folders: Folders): Promise<string[] | undefined> {
  const texts = [...new Set(textsOf(input))].filter((text) => text.length <= MAX_PATH_LENGTH).map(withoutScheme);
  if (texts.length > MAX_TEXTS) return undefined;
  const paths = await Promise.all(
    texts.map(async (text) => {
      const named = normalPath(text, folders);
      const real = named === undefined ? undefined : await findRealPath(named);
      return [named, real].filter((path) => path !== undefined);
    }),
  );
  return [...new Set(paths.flat())];
}

/** Loops instead of recursing, because inputs can be deeply nested. */
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
