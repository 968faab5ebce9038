// Imports modules of src and test into scripts, which run on a Node without TypeScript.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";

const root = join(import.meta.dirname, "..");

/**
 * Returns all exports of `modules`, from one bundled file that is deleted afterwards. Also exports zod and prom-client's
 * Registry, because second copies would not know the registrations of `modules`.
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
