import { fileURLToPath } from "node:url";
import { normalPath } from "../../security/normal-path.ts";
import { realPathOf } from "../../security/paths.ts";
import type { Folders } from "./places.ts";
import type { JsonObject } from "../../domain/json.ts";

/** The files that a shell command could mean, as far as its text shows them. */

/** Longer commands are not read: characters and words. */
const [MAX_COMMAND_LENGTH, MAX_WORDS] = [10_000, 200];

/** What stands for something else, or lets words count from another folder. */
const UNREADABLE = /[$`*?[\]{}\\!]|~[\w+-]|(?:^|[\s;&|(])(?:cd|pushd|popd|eval|source|\.|-C)(?=\s|$)/;

/** Their paths as they are named and as they really are. Undefined where the text does not show them. */
export async function mentionedPaths(command: string, folders: Folders): Promise<string[] | undefined> {
  if (command.length > MAX_COMMAND_LENGTH || UNREADABLE.test(command)) return undefined;
  const words = wordsOf(command);
  if (words.length > MAX_WORDS) return undefined;
  const paths = await Promise.all(
    words.map(async (word) => {
      const named = normalPath(word, folders);
      const real = named === undefined ? undefined : await realPathOf(named);
      return [named, real].filter((path) => path !== undefined);
    }),
  );
  return [...new Set(paths.flat())];
}

/** With quotes taken away, as borders, and as what holds a name together; options also without their letters. */
function wordsOf(command: string): string[] {
  const borders = /[\s;&|<>()=,:@]+/;
  const quoted = [...command.matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, double, single]) => double ?? single ?? "");
  const plain = [command.replaceAll(/["']/g, ""), command.replaceAll(/["']/g, " ")].flatMap((text) =>
    text.split(borders),
  );
  const options = plain.filter((word) => /^-\w./.test(word)).map((word) => word.slice(2));
  return [...new Set([...plain, ...quoted, ...options])].filter((word) => word.trim() !== "");
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
