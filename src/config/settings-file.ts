import { readFileSync, statSync } from "node:fs";

/** Bytes. */
const MAX_SETTINGS = 1_048_576;

/** The text of a file of settings. Throws for anything that could block its reader without end, or fill its memory. */
export function readSettingsFile(path: string): string {
  const about = statSync(path);
  if (!about.isFile()) throw new Error("it is no regular file");
  if (about.size > MAX_SETTINGS) throw new Error(`it has more than ${String(MAX_SETTINGS)} bytes`);
  return readFileSync(path, "utf8");
}
