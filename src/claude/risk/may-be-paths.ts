import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../domain/json.ts";
import { normalPath } from "../../security/normal-path.ts";
import { realPathOf } from "../../security/paths.ts";
import type { Folders } from "./places.ts";

/** The paths that a tool could take from its input where nobody knows which of its fields are paths. */

/** Texts in all, and characters of one that can still be a path. */
const [MAX_TEXTS, MAX_LENGTH] = [2_000, 4_096];

/** As they are named and as they really are. Undefined where there are too many to look at. */
export async function mayBePaths(input: JsonObject, folders: Folders): Promise<string[] | undefined> {
  const texts = [...new Set(textsOf(input))].filter((text) => text.length <= MAX_LENGTH).map(withoutScheme);
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
