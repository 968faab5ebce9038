import { normalPath } from "../../security/normal-path.ts";
import { realPathOf } from "../../security/paths.ts";
import type { Folders } from "./places.ts";

/** The files that a shell command could mean, as far as its text shows them. */

/** Of a command that is longer nothing is told: characters, and words. */
const [MAX_LENGTH, MAX_WORDS] = [10_000, 200];

/** What stands for something else, or lets words count from another folder. */
const UNREADABLE = /[$`*?[\]{}\\!]|~[\w+-]|(?:^|[\s;&|(])(?:cd|pushd|popd|eval|source|\.|-C)(?=\s|$)/;

/** Their paths as they are named and as they really are. Undefined where the text does not show them. */
export async function mentionedPaths(command: string, folders: Folders): Promise<string[] | undefined> {
  if (command.length > MAX_LENGTH || UNREADABLE.test(command)) return undefined;
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
