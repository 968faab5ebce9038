// Bundle for Claude Desktop: the built program, which needs no package to start.
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packExtension } from "@anthropic-ai/mcpb";
import { PLACES } from "./files.mjs";

/** Writes the bundle to `output`. Needs a build. Throws if the packer refuses. */
export async function packBundle(root, output) {
  if (!existsSync(join(root, "dist/build-id.txt"))) throw new Error("There is no build: npm run build");
  const folder = mkdtempSync(join(tmpdir(), "ccm-bundle-"));
  const put = (from, to = from) => cpSync(join(root, from), join(folder, to), { recursive: true });
  try {
    put(PLACES.bundle, "manifest.json");
    put(PLACES.icon, "icon.png");
    for (const file of ["dist", "package.json", "LICENSE"]) put(file);
    const isPacked = await packExtension({ extensionPath: folder, outputPath: output, silent: true });
    if (!isPacked) throw new Error(`${output} could not be packed`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
