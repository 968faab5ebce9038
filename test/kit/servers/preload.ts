import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Returns the flag of Node that loads `file` with `variables`, in a client's process and in the daemon that the client starts.
 * A flag, because a daemon inherits the flags of its starter, but not the environment.
 */
export function preloading(file: string, variables: Readonly<Record<string, string>>): string {
  const own = join(mkdtempSync(join(tmpdir(), "ccm-preload-")), "preload.mjs");
  const code = `Object.assign(process.env, ${JSON.stringify(variables)});\nawait import(${JSON.stringify(pathToFileURL(file).href)});\n`;
  writeFileSync(own, code);
  return `--import=${pathToFileURL(own).href}`;
}
