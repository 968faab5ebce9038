import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, expect, it } from "vitest";
import { z } from "zod";

const root = mkdtempSync(join(tmpdir(), "ccm-catalogues-"));
const at = (...names: string[]) => join(root, ...names);
for (const path of ["package.json", "server.json", ".claude-plugin", "catalogues", "Containerfile"]) {
  cpSync(path, at(path), { recursive: true });
}
afterAll(() => rmSync(root, { recursive: true }));

function change(file: string, from: string, to: string): void {
  const before = readFileSync(at(file), "utf8");
  expect(before).toContain(from);
  writeFileSync(at(file), before.replace(from, to));
}

it("check:catalogues names each stale file and each file that its catalogue would refuse", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  change("package.json", `"version": "${version}"`, '"version": "98.7.6"');
  change("server.json", `"version": "${version}"`, `"version": "^${version}"`);
  change("server.json", '"isSecret"', '"secret"');
  change("catalogues/bundle/manifest.json", '"author"', '"maker"');
  change("catalogues/plugin/.claude-plugin/plugin.json", '"background-agents"', '"claude-agents"');
  writeFileSync(at("catalogues/plugin/README.md"), "# Short\n");
  change(".claude-plugin/marketplace.json", '"owner"', '"owners"');
  change("Containerfile", "STOPSIGNAL", "STOPSIGN");
  const args = ["scripts/catalogues.mjs", "--check", "--root", root];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(status).toBe(1);
  const expected = [
    "server.json is stale",
    "manifest.json is stale",
    "plugin.json is stale",
    "README.md is stale",
    "marketplace.json is stale",
    "Containerfile is stale",
    "must be one version, and no range",
    'Unrecognized key: "secret"',
    "author: ",
    '"claude-agents" is reserved',
    "README_TRIVIAL",
    "owner: ",
    "Unknown instruction: STOPSIGN",
  ];
  expect(expected.filter((words) => !stderr.includes(words))).toEqual([]);
});

it("the name in the registry ends with the name of the package", () => {
  const Manifest = z.object({ mcpName: z.string(), name: z.string() });
  const { mcpName, name } = Manifest.parse(JSON.parse(readFileSync("package.json", "utf8")));
  expect(mcpName).toMatch(/^io\.github\.[\w-]+\/[\w-]+$/);
  expect(mcpName.endsWith(`/${name}`)).toBe(true);
});
