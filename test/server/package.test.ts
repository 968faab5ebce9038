import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";

import { PRODUCT } from "../../src/domain/names.ts";
import { constants } from "../kit/servers/constants.ts";
import { connect } from "../kit/servers/stdio-server.ts";

let folder: string;
let files: string[];

const Packed = z.array(z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) }));

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "ccm-pack-")));
  const out = execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [packed] = Packed.parse(JSON.parse(out));
  files = packed?.files.map(({ path }) => path) ?? [];
  execFileSync("tar", ["-xzf", join(folder, packed?.filename ?? ""), "-C", folder]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("npm pack ships the built program, the documents and nothing else", () => {
  const shipped = files.filter((path) => !/^(?:dist|examples)\//.test(path)).toSorted();
  expect(shipped).toMatchInlineSnapshot(`
    [
      "LICENSE",
      "README.md",
      "SECURITY.md",
      "docs/approvals.md",
      "docs/clients.md",
      "docs/configuration.md",
      "docs/console.md",
      "docs/daemon.md",
      "docs/events.md",
      "docs/http.md",
      "docs/installation.md",
      "docs/limits.md",
      "docs/machines.md",
      "docs/observability.md",
      "docs/receipts.md",
      "docs/security.md",
      "docs/sessions.md",
      "docs/toolsets.md",
      "docs/troubleshooting.md",
      "package.json",
    ]
  `);
  const examples = ["clients", "cluster"].flatMap((kind) =>
    readdirSync(`examples/${kind}`).map((file) => `examples/${kind}/${file}`),
  );
  expect(files.filter((path) => path.startsWith("examples/")).toSorted()).toEqual(examples.toSorted());
  const built = files.filter((path) => path.startsWith("dist/"));
  const rest = built.filter((path) => !path.endsWith(".js") && !/^dist\/console\/assets\/[\w-]+\.css$/.test(path));
  expect(rest.toSorted()).toEqual([
    "dist/THIRD-PARTY-NOTICES.txt",
    "dist/build-id.txt",
    "dist/console/icon.svg",
    "dist/console/index.html",
    "dist/proxy/answers.json",
  ]);
  expect(files).toContain("dist/cli/main.js");
  expect(files).toContain("dist/claude/supervise/reaper-process.js");
});

it("the code that answers initialize imports neither the tools nor the engine, and no second JSON Schema checker", () => {
  const program = readFileSync("dist/cli/serve.js", "utf8");
  const parts = [...program.matchAll(/\bimport\s*\{[^}]*\}\s*from\s*["'](\..+?)["']/g)].map(([, file = ""]) => file);
  expect(parts.toSorted()).toEqual(["../chunks/rolldown-runtime.js", "../config/version.js"]);
  expect(program).not.toMatch(/ajv/i);
});

it("the packed program starts, and answers an MCP client", async () => {
  const unpacked = join(folder, "package");
  // Links the dependencies installed here: the test shows only that no file of the package is missing.
  symlinkSync(resolve("node_modules"), join(unpacked, "node_modules"));
  const main = join(unpacked, "dist/cli/main.js");
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(readFileSync("package.json", "utf8")));
  expect(execFileSync(process.execPath, [main, "--version"], { encoding: "utf8" }).trim()).toBe(version);
  const server = await connect("modern", { main, args: ["--store", "memory:"], env: {} });
  const { sessions } = await server.call("claude_code_session", { action: "list" });
  expect(sessions).toEqual([]);
  await server.close();
});

it("npx starts the package in three folders, which share a daemon", async () => {
  const env = { PATH: process.env["PATH"] ?? "", HOME: folder, ...constants({ daemonStartMs: 30_000 }) };
  const ping = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })}\n`;
  const clients = await Promise.all(
    ["one", "two", "three"].map(async (name) => {
      const client = spawn("npx", ["--no-install", PRODUCT], {
        cwd: installedIn(join(folder, name)),
        env,
        stdio: "pipe",
      });
      client.stdin.write(ping);
      await once(client.stdout, "data");
      return client;
    }),
  );
  const run = (...args: string[]) =>
    execFileSync(process.execPath, ["dist/cli/main.js", "daemon", ...args], { env, stdio: "pipe" });
  expect(JSON.parse(run("status", "--json").toString())).toMatchObject({ daemons: [{ proxies: 3 }] });
  for (const client of clients) client.stdin.end();
  run("stop", "--yes");
});

/** Installs the package as npm does, but with the dependencies of this folder. */
function installedIn(project: string): string {
  const installed = join(project, "node_modules/claude-agents-mcp");
  mkdirSync(join(project, "node_modules/.bin"), { recursive: true });
  mkdirSync(installed);
  const packed = readdirSync(folder).find((file) => file.endsWith(".tgz")) ?? "";
  execFileSync("tar", ["-xzf", join(folder, packed), "-C", installed, "--strip-components=1"]);
  symlinkSync(resolve("node_modules"), join(installed, "node_modules"));
  symlinkSync("../claude-agents-mcp/dist/cli/main.js", join(project, "node_modules/.bin/claude-agents-mcp"));
  return project;
}
