import { homedir } from "node:os";
import { delimiter, resolve } from "node:path";

/** Reads paths in settings without a schema, because the proxy uses these functions and loads no schema. */

/** Resolves `path` against `base`. A leading ~ stands for `home`, by default that of the user of this process. */
export function absolutePath(path: string, base: string, home = homedir()): string {
  return resolve(
    base,
    path.replace(/^~(?=$|[\\/])/, () => home),
  );
}

/** Splits `text` as PATH is split, and at a comma before an absolute path. A folder with a comma at its end needs the flag. */
export function directoriesIn(text: string): string[] {
  return text.split(delimiter).flatMap((part) => part.split(/,(?=[~/\\]|[a-z]:[/\\])/i));
}
