// The bundle for Claude Desktop: the built program with what it needs to start. Claude Code and the Agent SDK are not in it.
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packExtension } from "@anthropic-ai/mcpb";
import { PLACES } from "./files.mjs";

/** Writes the bundle to `output`. Needs a build. Throws where the packer refuses. */
export async function packBundle(root, output) {
  if (!existsSync(join(root, "dist/build-id.txt"))) throw new Error("There is no build: npm run build");
  const folder = mkdtempSync(join(tmpdir(), "ccm-bundle-"));
  const put = (from, to = from) => cpSync(join(root, from), join(folder, to), { recursive: true });
  try {
    put(PLACES.bundle, "manifest.json");
    put(PLACES.icon, "icon.png");
    for (const file of ["dist", "package.json", "LICENSE", ...neededPackages(root)]) put(file);
    const isPacked = await packExtension({ extensionPath: folder, outputPath: output, silent: true });
    if (!isPacked) throw new Error(`${output} could not be packed`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The folders of the packages that the program imports, and of those that they need: paths in node_modules. */
function neededPackages(root) {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const found = new Set();
  const add = (name, from) => {
    const path = [`${from}/node_modules/${name}`, `node_modules/${name}`].find((each) => packages[each]);
    if (path === undefined) throw new Error(`package-lock.json has no ${name}`);
    if (found.has(path)) return;
    found.add(path);
    for (const each of Object.keys(packages[path].dependencies ?? {})) add(each, path);
  };
  const ours = Object.keys(packages[""].dependencies ?? {}).filter((name) => !name.startsWith("@anthropic-ai/"));
  for (const name of ours) add(name, "");
  return [...found];
}
