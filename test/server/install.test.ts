import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { DEPTH_VARIABLE } from "../../src/domain/names.ts";

/** `install` and `uninstall` of the built program, in a home folder made for the tests. */

const MAIN = resolve("dist/cli/main.js");
let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "home-"));
  for (const folder of ["project", ".gemini"]) mkdirSync(join(home, folder));
});
afterAll(() => rmSync(home, { recursive: true }));

function run(args: readonly string[], env: Record<string, string> = {}) {
  const { status, stderr, stdout } = spawnSync(process.execPath, [MAIN, ...args], {
    encoding: "utf8",
    cwd: join(home, "project"),
    env: { PATH: process.env["PATH"] ?? "", HOME: home, ANTHROPIC_API_KEY: "sk-1", ...env },
    input: "",
  });
  return { status, stderr, stdout };
}

const CHAT = ["--", "--toolsets", "agent,chat"];

it("install shows the change, writes it with --yes and lists it; uninstall restores the file", () => {
  const file = join(home, ".gemini", "settings.json");
  const before = '{\n  // mine\n  "mcpServers": {\n    "other": { "command": "x" }\n  },\n}';
  writeFileSync(file, before);

  const refused = run(["install", "gemini", ...CHAT]);
  expect(refused).toMatchObject({ status: 2, stdout: "" });
  expect(refused.stderr).toContain(`${file} would change:`);
  expect(refused.stderr).toContain('\n+      "timeout": 14430000\n');
  expect(refused.stderr).toContain("--yes is required");
  expect(readFileSync(file, "utf8")).toBe(before);

  const written = run(["install", "gemini", "--yes", "--json", ...CHAT]);
  expect(written).toMatchObject({ status: 0, stderr: "" });
  const report = z.looseObject({ copy: z.string() }).parse(JSON.parse(written.stdout));
  expect(report).toMatchObject({ client: "gemini", scope: "user", file, changed: true, notes: [] });
  expect(readFileSync(report.copy, "utf8")).toBe(before);

  const listed: unknown = JSON.parse(run(["install", "--json"]).stdout);
  const state = { found: true, user: { file, state: "different" }, project: { state: "absent" } };
  const { clients } = z.object({ clients: z.array(z.looseObject({ client: z.string() })) }).parse(listed);
  expect(clients.find(({ client }) => client === "gemini")).toMatchObject(state);

  expect(run(["uninstall", "gemini", "--yes"])).toMatchObject({ status: 0, stderr: "" });
  expect(readFileSync(file, "utf8")).toBe(before);
});

it("install --print prints the entry to paste, and writes nothing", () => {
  const { status, stderr, stdout } = run(["install", "cursor", "--print"]);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ mcpServers: { "claude-agents-mcp": { args: [MAIN] } } });
  expect(stderr).toContain(join(home, ".cursor", "mcp.json"));
  expect(stderr).toContain("https://cursor.com/en/install-mcp?name=claude-agents-mcp&config=");
  expect(existsSync(join(home, ".cursor"))).toBe(false);
});

it("install leaves a file unchanged if it cannot parse the file", () => {
  const file = join(home, "project", ".mcp.json");
  writeFileSync(file, '{"mcpServers": {}');
  const { status, stderr } = run(["install", "claude-code", "--scope", "project", "--yes"]);
  expect(status).toBe(1);
  expect(stderr).toContain(`${file} is not valid JSON: CloseBraceExpected (line 1, column 18)`);
  expect(readFileSync(file, "utf8")).toBe('{"mcpServers": {}');
});

it.each([
  ["cursor", [".cursor", "mcp.json"], `{"a": ${"[".repeat(20_000)}${"]".repeat(20_000)}}`, "is nested too deeply"],
  [
    "codex",
    [".codex", "config.toml"],
    "[[mcp_servers.claude-agents-mcp]]\n",
    "mcp_servers.claude-agents-mcp is a list of tables",
  ],
] as const)(
  "install, uninstall and the list name the file of %s that they cannot edit",
  (client, names, content, problem) => {
    const file = join(home, "odd", ...names);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    for (const verb of ["install", "uninstall"]) {
      const { status, stderr, stdout } = run([verb, client, "--yes"], { HOME: join(home, "odd") });
      expect([status, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(new RegExp(`^claude-agents-mcp: ${file} .*${problem}.*\\. Edit it by hand: .*\\.\n$`));
    }
    expect(run(["install"], { HOME: join(home, "odd") }).stdout).toMatch(
      new RegExp(`^${client} +yes +(?:unreadable|different)`, "m"),
    );
    expect(readFileSync(file, "utf8")).toBe(content);
  },
);

it("install changes no client of the user from inside a session", () => {
  const nested = run(["install", "cursor", "--yes"], { [DEPTH_VARIABLE]: "1" });
  expect(nested).toMatchObject({ status: 2, stdout: "" });
  expect(nested.stderr).toContain("cannot run inside a session");
  expect(existsSync(join(home, ".cursor"))).toBe(false);
});

it("uninstall deletes a file that install created, and both report what they did", () => {
  const file = join(home, ".cursor", "mcp.json");
  const written = run(["install", "cursor", "--yes"]);
  expect(written).toMatchObject({ status: 0, stderr: "" });
  expect(written.stdout).toContain(`Wrote ${file}.\nRestart Cursor`);
  expect(run(["install", "cursor", "--yes"]).stdout).toContain("has the entry already. Nothing to do.");
  expect(run(["install"]).stdout).toMatch(/^Client +Found +User +Project\n(?:.*\n)*cursor +yes +installed +absent$/m);
  expect(run(["uninstall", "cursor", "--yes"]).stdout).toContain(`Deleted ${file}, which install had created.`);
  expect(run(["uninstall", "cursor", "--yes"]).stdout).toContain("has no entry of this server. Nothing to do.");
  expect(existsSync(file)).toBe(false);
});

it("install --print --json for a project names file and link, and notes local paths and a missing login", () => {
  const words = ["install", "cursor", "--print", "--json", "--scope", "project"];
  const { status, stdout } = run(words, { ANTHROPIC_API_KEY: "" });
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    file: join(home, "project", ".cursor", "mcp.json"),
    link: expect.stringContaining("https://cursor.com/") as unknown,
    notes: [
      expect.stringContaining("the entry names paths of this machine") as unknown,
      expect.stringContaining("no login and no key of Claude Code were found") as unknown,
    ],
  });
});

it.each([
  [["uninstall"], "uninstall needs a client: claude-code, "],
  [["install", "curser"], 'install: unknown client "curser". Did you mean cursor?'],
  [["install", "gemini-cli"], 'install: unknown client "gemini-cli". Did you mean gemini? Known are claude-code, '],
  [["install", "cursor", "--scope", "all"], '--scope is "all": must be user or project.'],
  [["install", "windsurf", "--scope", "project"], "has no --scope project."],
  [["install", "cursor", "zed"], 'install: unexpected argument "zed"'],
  [["uninstall", "cursor", "--print"], "It takes --scope, --host, --json, --yes, a client."],
])("the command line %j is refused", (args, problem) => {
  const { status, stderr } = run(args);
  expect([status, stderr]).toEqual([2, expect.stringContaining(problem) as unknown]);
});
