import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { describe, expect, it } from "vitest";

import { checkClients } from "../../src/doctor/clients.ts";
import { checkClaude } from "../../src/doctor/check-runtime.ts";
import { SDK_PACKAGE } from "../../src/packages/pinned.ts";
import { planInstall, type Aim } from "../../src/install/change.ts";
import { CLIENTS, type Scope } from "../../src/install/clients.ts";
import { createPlaces } from "../../src/install/places.ts";
import { useMachine } from "../kit/install/doctor-machine.ts";

/** Findings of `doctor` about settings in entries of clients, and about a login before Claude Code is installed. */

const machine = useMachine();
const { at } = machine;

function aimAt(id: string, scope: Scope = "user"): Aim & { file: string } {
  const client = CLIENTS.find((each) => each.id === id)!;
  const places = createPlaces(machine.environment, at("work"));
  return { client, scope, places, stateFolder: machine.stateFolder, file: client.files[scope]!(places) };
}

/** Writes the entry that `install` would write, with further `flags` and keys. */
async function write(aim: Aim & { file: string }, flags: readonly string[], more: object = {}): Promise<void> {
  const entry = { ...aim.client.entry({ command: process.execPath, args: [machine.script, ...flags] }), ...more };
  if (aim.client.format === "toml") return void (await (await planInstall(aim, entry)).perform());
  mkdirSync(dirname(aim.file), { recursive: true });
  writeFileSync(aim.file, JSON.stringify({ [aim.client.table]: { "claude-agents-mcp": entry } }));
}

const userFile = () => at(".config", "claude-agents-mcp", "config.json");
const refusal = (title: string, file: string) =>
  `${title} cannot use this server: its entry in ${file} has invalid settings. `;

describe("entries with settings that the server refuses", () => {
  interface Row {
    readonly id: string;
    readonly flags?: readonly string[];
    readonly more?: object;
    readonly says: string;
    /** Flags of the repair command; `undefined` if no command can repair the entry. */
    readonly fixFlags?: string;
  }

  it.each<Row>([
    {
      id: "cursor",
      flags: ["--alow-dir", "/srv"],
      says: "Unknown flag --alow-dir. Did you mean --allow-dir?",
      fixFlags: " -- --allow-dir /srv",
    },
    {
      id: "opencode",
      flags: ["serve", "--alow-dir=/a b", "--max-wiat-ms=5000", "--sandbox", "required"],
      says: "Did you mean --allow-dir?",
      fixFlags: " -- '--allow-dir=/a b' --max-wait-ms=5000 --sandbox required",
    },
    {
      id: "codex",
      flags: ["--max-live", "2", "--unattended", "deny", "--spares=0"],
      says: '--max-live, --spares belong to the server, which has other clients, too. Set "maxLive", "spares" in FILE,',
      fixFlags: " -- --unattended deny",
    },
    { id: "zed", flags: ["--max-wait-ms", "many"], says: "--max-wait-ms is " },
    { id: "gemini", flags: ["--keep-ms", "3"], says: "--keep-ms is no longer a setting" },
    { id: "vscode", flags: ["--allow-dir", "src"], says: "--allow-dir is a relative path" },
    { id: "windsurf", flags: ["--http", "127.0.0.1:0"], says: "a server over HTTP is started by you", fixFlags: "" },
    { id: "windsurf", flags: ["--daemon", "a/b"], says: '--daemon "a/b" must be 1 to ' },
    { id: "claude-code", flags: ["--toolsets", "chat"], says: "toolsets" },
    {
      id: "claude-desktop",
      more: { env: { CLAUDE_CODE_MCP_MAX_LIVE: "2" } },
      says: 'CLAUDE_CODE_MCP_MAX_LIVE belongs to the server, which has other clients, too. Set "maxLive" in FILE,',
    },
    {
      id: "codex",
      more: { env_vars: ["CLAUDE_CODE_MCP_KEEP_MS"] },
      says: "CLAUDE_CODE_MCP_KEEP_MS is no longer a setting",
    },
    {
      id: "opencode",
      more: { environment: { CLAUDE_CODE_MCP_SANDBOX: "no" } },
      says: "CLAUDE_CODE_MCP_SANDBOX is ",
    },
  ])(
    "an entry of $id with flags $flags and keys $more is an error that names client, setting and place",
    async (row) => {
      machine.environment["CLAUDE_CODE_MCP_KEEP_MS"] = "1";
      mkdirSync(dirname(userFile()), { recursive: true });
      writeFileSync(userFile(), JSON.stringify({ bounds: { toolsets: ["agent"] } }));
      const aim = aimAt(row.id);
      await write(aim, row.flags ?? [], row.more);
      const [found, ...others] = await checkClients(machine.toMachine());
      expect(others).toEqual([]);
      expect(found?.level).toBe("error");
      const { title } = aim.client;
      expect(found?.text.startsWith(refusal(title, aim.file))).toBe(true);
      expect(found?.text).toContain(row.says.replace("FILE", userFile()));
      expect(found?.text.includes(`In "env" of the entry, so edit the file: CLAUDE_CODE_MCP_`)).toBe(!row.flags);
      const fix = row.fixFlags === undefined ? undefined : `claude-agents-mcp install ${row.id}${row.fixFlags}`;
      expect(found?.fix).toBe(fix);
    },
  );
});

it("`doctor` reports settings that servers refuse, and variables without effect", async () => {
  const found = await machine.onlyFault(machine.toMachine({}, ["--max-live", "many"]));
  expect(found).toMatchObject({ id: "settings", level: "error" });
  expect(found.text).toContain("--max-live");
  machine.environment["CLAUDE_CODE_MCP_MAX_LIFE"] = "3";
  const unknown = await machine.onlyFault();
  expect(unknown).toMatchObject({ id: "settings", level: "warning", fix: "unset CLAUDE_CODE_MCP_MAX_LIFE" });
  machine.typeFix(unknown);
  expect(await machine.faults()).toEqual([]);
  // The value is valid, but no client of a daemon may give the setting.
  machine.environment["CLAUDE_CODE_MCP_MAX_LIVE"] = "3";
  machine.environment["CLAUDE_CODE_MCP_SPARES"] = "0";
  expect(await machine.faults(machine.toMachine({}, ["--daemon", "off"]))).toEqual([]);
  const ofServer = await machine.onlyFault();
  const names = "CLAUDE_CODE_MCP_MAX_LIVE, CLAUDE_CODE_MCP_SPARES";
  expect(ofServer.text).toContain(`started with this environment is refused: ${names} belong to the server`);
  machine.typeFix(ofServer);
  expect(await machine.faults()).toEqual([]);
});

it("an entry that serves no MCP client is an error, with a command that repairs the entry", async () => {
  const aim = aimAt("cursor", "project");
  await write(aim, ["console"]);
  const found = await machine.onlyFault();
  expect(found).toMatchObject({ level: "error", fix: "claude-agents-mcp install cursor --scope project" });
  expect(found.text).toContain(`its entry in ${aim.file} runs "claude-agents-mcp console"`);
});

it("an entry that requires a sandbox is an error if no sandbox is available", async () => {
  await write(aimAt("zed"), ["--sandbox", "required"]);
  expect(await machine.faults()).toEqual([]);
  const sandboxProblem = async () => Promise.resolve("bwrap cannot be found in PATH.");
  const found = await machine.onlyFault(machine.toMachine({ sandboxProblem }));
  expect(found).toMatchObject({ id: "clients", level: "error" });
  expect(found.text).toContain('has sandbox "required", and no sandbox is available. bwrap cannot');
});

it("an entry that names a missing Claude Code is an error", async () => {
  await write(aimAt("zed"), ["--claude-path", at("claude")]);
  const found = await machine.onlyFault();
  expect(found).toMatchObject({ id: "clients", level: "error" });
  expect(found.text).toContain(`has the Claude Code ${at("claude")}, which does not exist.`);
  writeFileSync(at("claude"), "");
  expect(await machine.faults()).toEqual([]);
});

it("settings that the server accepts are not a fault, also with variables of the client or relative to a project", async () => {
  await write(aimAt("codex"), ["--daemon", "off", "--max-live", "2"]);
  await write(aimAt("gemini"), ["--store", "memory:", "--spares", "0"]);
  await write(aimAt("windsurf"), ["--allow-bypass=false"]);
  await write(aimAt("cursor", "project"), ["--allow-dir", "."]);
  await write(aimAt("vscode"), ["--allow-dir", "${workspaceFolder}", "--max-wait-ms", "${input:wait}"]);
  await write(aimAt("opencode"), [], { environment: { CLAUDE_CODE_MCP_MAX_WAIT_MS: "{env:WAIT}" } });
  await write(aimAt("zed"), ["serve", "--max-wait-ms", "5000"], { env: { CLAUDE_CODE_MCP_UNATTENDED: "deny" } });
  expect(await machine.faults()).toEqual([]);
});

it("an entry with an unknown variable, too short a timeout or a daemon that does not run is a warning", async () => {
  await write(aimAt("cursor"), [], { env: { CLAUDE_CODE_MCP_MAX_LIFE: "2" } });
  const unknown = await machine.onlyFault();
  expect(unknown).toMatchObject({ level: "warning" });
  expect(unknown.text).toMatch(/^Cursor: CLAUDE_CODE_MCP_MAX_LIFE is not a setting .*MAX_LIVE\? It is in "env" of /);
  rmSync(aimAt("cursor").file);

  const query = ["--toolsets", "agent,query"];
  await write(aimAt("codex"), query);
  const early = await machine.onlyFault();
  expect(early).toMatchObject({ level: "warning", fix: "claude-agents-mcp install codex -- --toolsets agent,query" });
  expect(early.text).toContain('"tool_timeout_sec"');
  expect(early.text).toContain("may take 300 s");
  await write(aimAt("codex"), query, { tool_timeout_sec: 330 });
  expect(await machine.faults()).toEqual([]);

  await write(aimAt("codex"), ["--daemon", "work"]);
  const absent = await machine.onlyFault();
  expect(absent).toMatchObject({ level: "warning", fix: "claude-agents-mcp daemon run --daemon work" });
  expect(absent.text).toContain("Codex CLI uses the daemon work by its entry in ");
});

describe("a login before Claude Code is installed", () => {
  const login = async () => {
    const locate = async () =>
      Promise.resolve({ path: undefined, version: undefined, warning: undefined, toInstall: SDK_PACKAGE });
    return (await checkClaude(machine.toMachine({ claude: { locate } }))).find(({ id }) => id === "login");
  };
  const file = (name: string, content: object) => {
    mkdirSync(at(".claude"), { recursive: true });
    writeFileSync(at(name), JSON.stringify(content));
  };

  it("the lack of a login and of a key is an error that names the searched places", async () => {
    const found = await login();
    expect(found).toMatchObject({
      level: "error",
      fix: "npm install -g @anthropic-ai/claude-code && claude auth login",
    });
    expect(found?.text).toContain("No login and no key of Claude Code were found");
    expect(found?.text).toContain(at(".claude", ".credentials.json"));
    // Files without a login or key do not count.
    file(".claude.json", { projects: {}, oauthAccount: null });
    file(".claude/settings.json", { env: { LANG: "C" } });
    machine.environment["CLAUDE_CODE_USE_MANTLE"] = "0";
    machine.environment["CLAUDE_CODE_USE_POWERSHELL_TOOL"] = "1";
    expect(await login()).toMatchObject({ level: "error" });
  });

  it.each<[string, () => void, string]>([
    [
      "a token in a variable",
      () => void (machine.environment["CLAUDE_CODE_OAUTH_TOKEN"] = "x"),
      "CLAUDE_CODE_OAUTH_TOKEN",
    ],
    ["a cloud provider", () => void (machine.environment["CLAUDE_CODE_USE_BEDROCK"] = "1"), "CLAUDE_CODE_USE_BEDROCK"],
    [
      "another cloud provider",
      () => void (machine.environment["CLAUDE_CODE_USE_MANTLE"] = "1"),
      "CLAUDE_CODE_USE_MANTLE",
    ],
    ["a file of credentials", () => file(".claude/.credentials.json", { claudeAiOauth: {} }), ".credentials.json"],
    [
      "an account in .claude.json",
      () => file(".claude.json", { oauthAccount: { emailAddress: "a@b" } }),
      ".claude.json",
    ],
    ["a key helper in settings", () => file(".claude/settings.json", { apiKeyHelper: "pass" }), "settings.json"],
    ["a key in settings", () => file(".claude/settings.json", { env: { ANTHROPIC_API_KEY: "sk-1" } }), "settings.json"],
  ])("%s counts as a login", async (_, make, says) => {
    make();
    const found = await login();
    expect(found?.level).toBe("ok");
    expect(found?.text).toContain(says);
    expect(found?.text).not.toContain("sk-1");
  });

  it("a key in the entry of a client counts for the sessions of that client only", async () => {
    await write(aimAt("cursor"), [], { env: { ANTHROPIC_API_KEY: "sk-1" } });
    const found = await login();
    expect(found?.level).toBe("warning");
    expect(found?.text).toContain("Entries of clients give one, for their own sessions: Cursor (ANTHROPIC_API_KEY).");
    expect(existsSync(aimAt("cursor").file) && readFileSync(aimAt("cursor").file, "utf8")).toContain("sk-1");
    rmSync(join(at("logged-in")));
    expect((await machine.onlyFault()).text).toContain("is not logged in, and the environment has no key");
  });
});
