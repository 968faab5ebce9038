import { homedir } from "node:os";
import { delimiter, resolve } from "node:path";

/** Paths in settings, without a schema: the proxy reads them too, which loads none. */

/** Absolute, a leading ~ being the home folder: by default that of the user of this process. */
export function absolutePath(path: string, base: string, home = homedir()): string {
  return resolve(
    base,
    path.replace(/^~(?=$|[\\/])/, () => home),
  );
}

/** As in PATH; a comma separates too where an absolute path follows it. A folder whose name ends in one takes the flag. */
export function directoriesIn(text: string): string[] {
  return text.split(delimiter).flatMap((part) => part.split(/,(?=[~/\\]|[a-z]:[/\\])/i));
}
