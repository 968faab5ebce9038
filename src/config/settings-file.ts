import { readFileSync, statSync } from "node:fs";

/** Maximum size, bytes. */
const MAX_SETTINGS = 1_048_576;

/** Reads a settings file. Throws for files that could block the read without end (such as pipes) or fill the memory. */
export function readSettingsFile(path: string): string {
  const about = statSync(path);
  if (!about.isFile()) throw new Error("it is not a regular file");
  if (about.size > MAX_SETTINGS) throw new Error(`it has more than ${String(MAX_SETTINGS)} bytes`);
  return readFileSync(path, "utf8");
}
