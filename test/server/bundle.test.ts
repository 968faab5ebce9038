import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve, sep } from "node:path";

import { getMcpConfigForManifest, unpackExtension, vAny } from "@anthropic-ai/mcpb";
import { afterAll, beforeAll, expect, it } from "vitest";

import { DRIVER_PACKAGE } from "../../src/packages/pinned.ts";
import { connectTo } from "../kit/servers/stdio-server.ts";

/** Tests the bundle for Claude Desktop, unpacked and started as by a client. */

let root: string;
let unpacked: string;
beforeAll(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-bundle-ü ")));
  const bundle = join(root, "server.mcpb");
  execFileSync(process.execPath, ["scripts/catalogues.mjs", "--pack", bundle], { stdio: "pipe" });
  unpacked = join(root, "unpacked");
  const isUnpacked = await unpackExtension({ mcpbPath: bundle, outputDir: unpacked, silent: true });
  if (!isUnpacked) throw new Error("the bundle cannot be unpacked");
  // Links the SQLite driver beside the bundle, not into it: the Node of clients contains SQLite, the Node of the tests may not.
  mkdirSync(join(root, "node_modules", DRIVER_PACKAGE.name, ".."), { recursive: true });
  symlinkSync(resolve("node_modules", DRIVER_PACKAGE.name), join(root, "node_modules", DRIVER_PACKAGE.name));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

it("the bundle starts the server without options, contains no node_modules and is smaller than 3 MB", async () => {
  const manifest = vAny.McpbManifestSchema.parse(JSON.parse(readFileSync(join(unpacked, "manifest.json"), "utf8")));
  const config = await getMcpConfigForManifest({
    manifest,
    extensionPath: unpacked,
    systemDirs: {},
    userConfig: {},
    pathSeparator: sep,
  });
  expect(config?.command).toBe("node");
  expect(JSON.stringify(config)).not.toContain("${");
  const env = { ...config?.env, HOME: root, CLAUDE_CODE_MCP_STORE: "memory:" };
  const server = await connectTo("modern", config?.args ?? [], env);
  expect(await server.call("claude_code_session", { action: "list" })).toMatchObject({ sessions: [] });
  await server.close();

  expect(readdirSync(unpacked)).not.toContain("node_modules");
  expect(statSync(join(root, "server.mcpb")).size).toBeLessThan(3_000_000);
});
