import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * The word of Node that loads a module with these variables, in a client's end and in the daemon that it starts. A daemon has the words of
 * its starter, and not its environment.
 */
export function preloading(file: string, variables: Readonly<Record<string, string>>): string {
  const own = join(mkdtempSync(join(tmpdir(), "ccm-preload-")), "preload.mjs");
  const code = `Object.assign(process.env, ${JSON.stringify(variables)});\nawait import(${JSON.stringify(pathToFileURL(file).href)});\n`;
  writeFileSync(own, code);
  return `--import=${pathToFileURL(own).href}`;
}
