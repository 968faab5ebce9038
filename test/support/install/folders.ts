import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Of all files in it, at any depth. */
export function bytesOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { name, parentPath }) => sum + statSync(join(parentPath, name)).size, 0);
}
