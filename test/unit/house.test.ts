import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { afterEach, describe, expect, it } from "vitest";

const roots: string[] = [];

afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true });
});

/** Runs the check with a real house-rules.json over a tree of `files`. */
function check(files: Record<string, string>, house = "house-rules.json"): { code: number | null; out: string } {
  const root = mkdtempSync(join(tmpdir(), "house-"));
  roots.push(root);
  copyFileSync(house, join(root, "house-rules.json"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, "src", path)), { recursive: true });
    writeFileSync(join(root, "src", path), text);
  }
  const run = spawnSync(process.execPath, ["scripts/check-house.mjs", root], { encoding: "utf8" });
  return { code: run.status, out: run.stdout + run.stderr };
}

/** Makes a file large enough to have one importer. */
const LINES = "// a line\n".repeat(40);
const domain = { "domain/event.ts": `export const event = 1;\n${LINES}` };
const engine = {
  "engine/ports.ts": `export type Port = 1;\n${LINES}`,
  "engine/engine.ts": `export const engine = 1;\n${LINES}`,
};

describe("code that the house check allows", () => {
  it("a small file with two importers and a small file listed as a tool are allowed", () => {
    const files = {
      "mcp/a.ts": "export const a = 1;\n",
      "mcp/b.ts": 'import { a } from "./a.ts";\n',
      "mcp/c.ts": 'import { a } from "./a.ts";\n',
      "tools/claude-code-configure.ts": "export const tool = 1;\n",
      "tools/toolsets.ts": 'import { tool } from "./claude-code-configure.ts";\n',
    };
    expect(check(files).out).toBe("house: 5 files, 3 imports, no violation\n");
  });

  it.each<[string, Record<string, string>]>([
    ["zod in domain", { "domain/a.ts": 'import { z } from "zod";\n' }],
    ["node:crypto in engine", { "engine/a.ts": 'import { randomUUID } from "node:crypto";\n' }],
    ["the engine's ports in claude", { ...engine, "claude/a.ts": 'import type { Port } from "../engine/ports.ts";\n' }],
    ["the Agent SDK in claude", { "claude/a.ts": 'await import("@anthropic-ai/claude-agent-sdk");\n' }],
    ["a subpath of the MCP server in mcp", { "mcp/a.ts": 'import { x } from "@modelcontextprotocol/server/stdio";\n' }],
    [
      "the app in cli",
      { "app/app.ts": `export const app = 1;\n${LINES}`, "cli/main.ts": 'import { app } from "../app/app.ts";\n' },
    ],
    ["a .js path to a .ts file", { ...domain, "engine/a.ts": 'import { event } from "../domain/event.js";\n' }],
    ["an import named in a comment", { "domain/a.ts": '// import("node:fs") is not for us\nexport const a = 1;\n' }],
  ])("%s is allowed", (_, files) => {
    expect(check(files)).toEqual({
      code: 0,
      out: expect.stringMatching(/^house: \d+ files, \d+ imports, no violation\n$/),
    });
  });

  it("the files and imports that were read are counted", () => {
    const files = { ...domain, "engine/a.ts": 'import { event } from "../domain/event.ts";\n' };
    expect(check(files).out).toBe("house: 2 files, 1 imports, no violation\n");
  });
});

describe("the house-rules.json of the page", () => {
  it("the page may import types of the server, and nothing else of it", () => {
    const page = (text: string) => check({ "net/a.ts": `${text}\n` }, "console/house-rules.json").out;
    expect(page('import type { Me } from "../../../src/console/wire.ts";')).toBe(
      "house: 1 files, 1 imports, no violation\n",
    );
    expect(page('import { Scope } from "../../../src/domain/principal.ts";')).toContain("only types may be imported");
    expect(page('import type { Engine } from "../../../src/engine/api.ts";')).toContain("must stay inside src");
  });
});

describe("code that the house check forbids", () => {
  it("an import is reported once, at its own line", () => {
    const files = { ...engine, "domain/a.ts": 'import "zod";\nimport { engine } from "../engine/engine.ts"; // why\n' };
    expect(check(files).out).toBe(
      'src/domain/a.ts:2 imports ../engine/engine.ts: domain may import only domain. Pass it in, move the code, or add it to "imports" of domain in house-rules.json if the direction is right\n',
    );
  });

  it.each<[string, Record<string, string>, string]>([
    [
      "an import from a forbidden folder, with its line",
      { ...engine, "domain/a.ts": 'import { z } from "zod";\n\nimport { engine } from "../engine/engine.ts";\n' },
      "src/domain/a.ts:3 imports ../engine/engine.ts: domain may import only domain. Pass it in",
    ],
    [
      "a type import",
      { ...engine, "claude/a.ts": 'import type { engine } from "../engine/engine.ts";\n' },
      "src/claude/a.ts:1 imports ../engine/engine.ts: claude may import only claude, domain, engine/ports.ts, pack/pack-to-file.ts, packages, security, shim/ended.ts, shim/fields.ts, shim/frame.ts, shim/protocol.ts. Pass it in",
    ],
    [
      "an import over several lines, with a quote in a comment",
      { ...engine, "domain/a.ts": 'import {\n  engine, // don\'t "ask"; really\n} from "../engine/engine.ts";\n' },
      "src/domain/a.ts:1 imports ../engine/engine.ts",
    ],
    [
      "the second of two side-effect imports",
      { ...engine, "domain/a.ts": 'import "zod";\nimport "../engine/engine.ts";\n' },
      "src/domain/a.ts:2 imports ../engine/engine.ts",
    ],
    [
      "an export from a forbidden folder",
      { ...engine, "domain/a.ts": 'export { engine } from "../engine/engine.ts";\n' },
      "src/domain/a.ts:1 imports ../engine/engine.ts",
    ],
    [
      "an export of everything in a forbidden file",
      { ...engine, "domain/a.ts": 'export * as all from "../engine/engine.ts";\n' },
      "src/domain/a.ts:1 imports ../engine/engine.ts",
    ],
    [
      "a dynamic import",
      { "engine/a.ts": 'const sdk = await import(\n  "@anthropic-ai/claude-agent-sdk"\n);\n' },
      "src/engine/a.ts:1 imports @anthropic-ai/claude-agent-sdk: only claude may import @anthropic-ai/claude-agent-sdk*. Use it through src/claude\n",
    ],
    [
      "a type taken by import()",
      { "app/app.ts": 'type Sdk = typeof import("@anthropic-ai/claude-agent-sdk");\n' },
      "src/app/app.ts:1 imports @anthropic-ai/claude-agent-sdk: only claude",
    ],
    [
      "a computed dynamic import",
      { "store/a.ts": "await import(name);\n" },
      "src/store/a.ts:1 imports a module that cannot be read here",
    ],
    [
      "an import that cannot be read",
      { "store/a.ts": "import x from\n/*\n it's */ y;\n" },
      "src/store/a.ts:1 imports a module that",
    ],
    [
      "a require",
      { "mcp/a.ts": 'require("pino");\n' },
      "src/mcp/a.ts:1 imports pino: only log may import pino. Use it through src/log\n",
    ],
    [
      "a package that is not in the table",
      { "config/a.ts": 'import x from "lodash";\n' },
      "src/config/a.ts:1 imports lodash: config may import only these packages: zod. Move the code to a folder that may, or add it to",
    ],
    [
      "a database driver outside store",
      { "app/app.ts": 'import "node:sqlite";\n' },
      "only store may import node:sqlite. Use it through src/store\n",
    ],
    [
      "a built-in in domain",
      { "domain/a.ts": 'import "node:fs";\n' },
      "node:fs: domain is pure: no module of Node. Pass in what it does",
    ],
    [
      "a built-in without its prefix",
      { "domain/a.ts": 'import "fs";\n' },
      "fs: domain is pure: no module of Node. Pass in what it does",
    ],
    [
      "a built-in in engine",
      { "engine/a.ts": 'import "node:fs";\n' },
      "of Node's modules only node:crypto. Pass in what it does",
    ],
    [
      "the cli in app",
      { "cli/a.ts": "", "app/app.ts": 'import "../cli/a.ts";\n' },
      "src/app/app.ts:1 imports ../cli/a.ts",
    ],
    [
      "an import from outside src",
      { "cli/a.ts": 'import "../../package.json";\n' },
      "an import must stay inside src. Move what is needed into src\n",
    ],
    [
      "a file that is not there",
      { "cli/a.ts": 'import "./b.ts";\n' },
      "src/cli/a.ts:1 imports ./b.ts: no such file in src. Correct the path\n",
    ],
    [
      "a folder without a row",
      { "extra/a.ts": "" },
      'src/extra/a.ts: extra has no row in house-rules.json. Add one to "folders"',
    ],
    [
      "a cycle of type imports",
      { "engine/a.ts": 'import type { B } from "./b.ts";\n', "engine/b.ts": 'export type { A } from "./a.ts";\n' },
      "src/engine/b.ts:1 imports engine/a.ts: a cycle, engine/a.ts -> engine/b.ts -> engine/a.ts. Move what both need",
    ],
    ["a banned file name", { "domain/session-manager.ts": "" }, 'src/domain/session-manager.ts is named "manager"'],
    ["a banned folder name", { "engine/utils/a.ts": "" }, 'src/engine/utils is named "utils"'],
    [
      "a folder too deep",
      { "tools/a/b/c/d.ts": "" },
      "src/tools/a/b/c is 4 folders deep: at most 3 below src. Move its files up",
    ],
    [
      "a small file with one importer",
      { "mcp/a.ts": "export const a = 1;\n", "mcp/b.ts": 'import { a } from "./a.ts";\n' },
      'src/mcp/a.ts has 1 lines and one importer: merge it into src/mcp/b.ts, or list it in "smallFiles" of house-rules.json if it is a command',
    ],
    [
      "a file of smallFiles that has two importers",
      {
        "cli/token.ts": "export const a = 1;\n",
        "cli/a.ts": 'import { a } from "./token.ts";\n',
        "cli/b.ts": 'import { a } from "./token.ts";\n',
      },
      'src/cli/token.ts is not small or has other importers: take it out of "smallFiles" of house-rules.json\n',
    ],
    [
      "two files of one name in a folder of src",
      { "tools/a.ts": "", "tools/agent/a.ts": "" },
      "src/tools/agent/a.ts has the name of src/tools/a.ts: rename the newer one",
    ],
    ["an empty tree", {}, "no source file was read below src"],
  ])("%s is reported", (_, files, line) => {
    const { code, out } = check(files);
    expect(out).toContain(line);
    expect(code).toBe(1);
  });
});
