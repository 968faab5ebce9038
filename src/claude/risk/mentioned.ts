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
  const all = wordsOf(command);
  const from = folderOf(command, folders);
  const words = all
    .filter((word) => !STANDS_FOR.test(word) && (from !== undefined || isWhole(word)))
    .slice(0, MAX_WORDS);
  const paths = await Promise.all(
    words.map(async (word) => {
      const named = normalPath(word, { ...folders, cwd: from ?? folders.cwd });
      const real = named === undefined ? undefined : await realPathOf(named);
      return [named, real].filter((path) => path !== undefined);
    }),
  );
  return [...new Set(paths.flat())];
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
