// Writes the files of catalogues of MCP servers from package.json and src: server.json (MCP Registry), the plugin and its
// marketplace (Claude Code), the manifest of the bundle (Claude Desktop), the Containerfile.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { readArguments } from "./arguments.mjs";
import { catalogueFiles } from "./catalogues/files.mjs";
import { packBundle } from "./catalogues/pack.mjs";
import { faultsIn } from "./catalogues/validate.mjs";
import { fromSource } from "./from-source.mjs";

const USAGE = `Usage: node scripts/catalogues.mjs [--check] [--pack FILE] [--root FOLDER]

Always validates the files as their catalogues do, offline.

--check        write nothing, and fail if a file is stale
--pack FILE    also write the bundle (after npm run build)
--root FOLDER  use package.json and files of another clone`;

const options = { check: { type: "boolean" }, pack: { type: "string" }, root: { type: "string" } };
const { check = false, pack, root = join(import.meta.dirname, "..") } = readArguments(USAGE, { options }).values;
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const modules = [
  "config/query",
  "config/schema",
  "domain/names",
  "install/clients",
  "install/invocation",
  "mcp/resources/skill",
  "tools/toolsets",
];
const files = await catalogueFiles(manifest, await fromSource(modules.map((module) => `src/${module}`)));

const stale = [...files].filter(([file, text]) => text !== present(file));
const faults = check ? stale.map(([file]) => `${file} is stale: run node scripts/catalogues.mjs`) : [];
if (!check) for (const [file, text] of stale) write(file, text);
faults.push(...faultsIn(root, manifest, bundledClaude()));
if (faults.length === 0 && pack !== undefined) await packBundle(root, pack);

for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
else console.log(`catalogues: ${files.size} files valid, ${check ? "none stale" : `${stale.length} written`}`);

function present(file) {
  try {
    return readFileSync(join(root, file), "utf8");
  } catch {
    return undefined;
  }
}

function write(file, text) {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
}

/** Returns the path of the Claude Code that npm has installed beside the Agent SDK for this system. */
function bundledClaude() {
  const { resolve } = createRequire(import.meta.url);
  const { arch, platform } = process;
  for (const system of [`${platform}-${arch}`, `${platform}-${arch}-musl`]) {
    try {
      return resolve(`@anthropic-ai/claude-agent-sdk-${system}/${platform === "win32" ? "claude.exe" : "claude"}`);
    } catch {
      // Not for this C library.
    }
  }
  throw new Error("npm has installed no Claude Code beside the Agent SDK: run npm ci");
}
