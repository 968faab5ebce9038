// Modules of src and test for scripts, which run on a Node that reads no TypeScript.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";

const root = join(import.meta.dirname, "..");

/**
 * All exports of these modules, from one bundled file that is deleted afterwards. zod and prom-client's Registry come with them:
 * second copies would not know what the modules have registered.
 */
export async function fromSource(modules) {
  const lines = [...modules.map((module) => `export * from "/${module}.ts";`), 'export { z } from "zod";'];
  lines.push('export { Registry } from "prom-client";');
  const entry = {
    name: "entry",
    resolveId: (id) =>
      id === "docs" ? join(root, "docs.mjs") : /^\/(src|test)\//.test(id) ? join(root, id) : undefined,
    load: (id) => (id === join(root, "docs.mjs") ? lines.join("\n") : undefined),
  };
  const folder = mkdtempSync(join(tmpdir(), "ccm-docs-"));
  const file = join(folder, "docs.mjs");
  await build({ cwd: root, input: "docs", platform: "node", plugins: [entry], output: { file, codeSplitting: false } });
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
