import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  openSync,
  writeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";

import { startScriptedModel, type ScriptedModel } from "../../src/demo/model/server.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { connect } from "../kit/servers/stdio-server.ts";

/** Tests `doctor` of the built program on broken machines: store, mounts, a package without the Claude Code of the Agent SDK. */

const MAIN = resolve("dist/cli/main.js");
const STAND_IN = resolve("test/kit/stand-in/claude.mjs");
const root = realpathSync(mkdtempSync(join(tmpdir(), "d-")));
let home: string;
let environment: Record<string, string>;

const at = (...names: string[]) => join(home, ...names);
const store = () => at("state", "claude-agents-mcp", "store.db");

/** Script in place of `claude`: logged in if `ANTHROPIC_API_KEY` is set, and otherwise the stand-in. */
const CLAUDE = `#!/bin/sh
[ "$1" = --version ] && echo "2.1.332 (Claude Code)" && exit
if [ "$1 $2" = "auth status" ]; then
  [ -n "$ANTHROPIC_API_KEY" ] && echo '{"loggedIn":true,"authMethod":"api_key"}' || echo '{"loggedIn":false}'
  exit
fi
exec ${process.execPath} ${STAND_IN} "$@"
`;

beforeEach(() => {
  home = mkdtempSync(join(root, "home-"));
  mkdirSync(at("bin"));
  writeFileSync(at("bin", "claude"), CLAUDE, { mode: 0o755 });
  environment = {
    HOME: home,
    PATH: `${at("bin")}:${process.env["PATH"] ?? ""}`,
    XDG_STATE_HOME: at("state"),
    XDG_CACHE_HOME: at("cache"),
    XDG_RUNTIME_DIR: mkdtempSync(join(root, "r-")),
    TMPDIR: home,
    CLAUDE_CODE_MCP_CLAUDE_PATH: at("bin", "claude"),
    ANTHROPIC_API_KEY: "sk-ant-very-secret",
  };
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const Report = z.object({
  findings: z.array(
    z.strictObject({
      id: z.string(),
      level: z.enum(["ok", "warning", "error"]),
      text: z.string(),
      fix: z.string().optional(),
    }),
  ),
  fixed: z.array(z.string()).optional(),
});

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(command: string, args: readonly string[]): Promise<Run> {
  const child = spawn(command, args, { env: environment, cwd: home, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const [code]: unknown[] = await once(child, "close");
  return { code: typeof code === "number" ? code : null, stdout, stderr };
}

const doctor = async (...args: string[]) => run(process.execPath, [MAIN, "doctor", ...args]);

async function findings(...args: string[]) {
  const { code, stdout } = await doctor("--json", ...args);
  const report = Report.parse(JSON.parse(stdout));
  return {
    code,
    all: report.findings,
    fixed: report.fixed,
    of: (id: string) => report.findings.filter((each) => each.id === id),
  };
}

/** Lets a server make the store. */
async function makeStore(): Promise<void> {
  const server = await connect("modern", { args: [], env: environment });
  await server.call("claude_code_session", { action: "list" });
  await server.close();
  expect(existsSync(store())).toBe(true);
}

describe("claude-agents-mcp doctor", () => {
  it("doctor finds nothing wrong after a server has run, and shows no secret", async () => {
    await makeStore();
    const { code, stdout } = await doctor();
    expect(stdout).toContain("Nothing is wrong.");
    expect(stdout).toMatch(/^ok {7}\S+store\.db: 0 sessions, format \d+, SQLite [\d.]+, whole\.$/m);
    expect(stdout).toContain("uses ANTHROPIC_API_KEY, which is billed");
    expect(stdout).not.toContain("very-secret");
    expect(code).toBe(0);
  });

  it("doctor names a damaged store and a command after which nothing is wrong", async () => {
    await makeStore();
    const database = await openDatabase(store());
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    database.close();
    // Keeps header and schema whole, so that only a check of the other pages finds the damage.
    const file = openSync(store(), "r+");
    writeSync(file, randomBytes(6 * 4096), 0, 6 * 4096, 4096);
    closeSync(file);
    const { code, of } = await findings();
    expect(code).toBe(1);
    const [found] = of("store");
    expect(found?.level).toBe("error");
    expect(found?.text).toContain("is damaged");
    execFileSync("/bin/sh", ["-c", found?.fix ?? ""]);
    expect(existsSync(`${store()}.damaged`)).toBe(true);
    expect(await findings()).toMatchObject({ code: 0 });
  });

  it("doctor names a database of another program", async () => {
    mkdirSync(at("state", "claude-agents-mcp"), { recursive: true, mode: 0o700 });
    const database = await openDatabase(store());
    database.exec("CREATE TABLE recipes(name TEXT)");
    database.close();
    chmodSync(store(), 0o600);
    const text = expect.stringContaining("is a database of another program") as string;
    expect((await findings()).of("store")).toMatchObject([{ level: "error", text }]);
  });

  it("doctor --fix corrects the mode of the state folder, and says so", async () => {
    mkdirSync(at("state", "claude-agents-mcp"), { recursive: true });
    chmodSync(at("state", "claude-agents-mcp"), 0o777);
    const { code, fixed, of } = await findings("--fix");
    expect(fixed).toEqual([expect.stringContaining("700") as string]);
    expect(of("state-folder")).toMatchObject([{ level: "ok" }]);
    expect(code).toBe(0);
  });

  it("doctor ends in time if Claude Code hangs, and names the check that it waits for", async () => {
    writeFileSync(at("bin", "claude"), "#!/bin/sh\nsleep 600\n", { mode: 0o755 });
    const { code, stderr, stdout } = await doctor();
    expect(stdout).toContain("did not answer --version within 5 s");
    expect(stderr).toContain("Checking Claude Code and its login ...");
    expect(code).toBe(1);
  });

  it("doctor ends even if a file operation of its checks hangs", async () => {
    execFileSync("/bin/sh", ["-c", `mkfifo ${at("pipe")}`]);
    writeFileSync(
      at("hang.mjs"),
      `if (process.send) import("node:fs").then((fs) => fs.promises.open("${at("pipe")}"));`,
    );
    environment["NODE_OPTIONS"] = `--import ${at("hang.mjs")}`;
    const { code, stdout } = await doctor("--store", "memory:");
    expect(stdout).toContain("Sessions are kept in memory");
    expect(stdout).toContain("Nothing is wrong.");
    expect(code).toBe(0);
  });

  it("doctor names a client's invalid entry, the error of the server that it starts, and the command that corrects it", async () => {
    const args = [MAIN, "--alow-dir", "/srv"];
    mkdirSync(at(".cursor"));
    const entry = { command: process.execPath, args };
    writeFileSync(at(".cursor", "mcp.json"), JSON.stringify({ mcpServers: { "claude-agents-mcp": entry } }));
    const [server, { of }] = await Promise.all([run(process.execPath, args), findings()]);
    expect(server.code).toBe(2);
    const why = server.stderr.replace("claude-agents-mcp: ", "").trimEnd();
    expect(why).toContain("Did you mean --allow-dir?");
    const text = `Cursor cannot use this server: its entry in ${at(".cursor", "mcp.json")} has invalid settings. ${why}`;
    expect(of("clients")).toEqual([
      {
        id: "clients",
        level: "error",
        text,
        fix: expect.stringMatching(/install cursor -- --allow-dir \/srv$/) as string,
      },
    ]);
  });

  it("doctor refuses a word that is not a flag", async () => {
    expect(await doctor("now")).toMatchObject({ code: 2, stderr: expect.stringContaining('"now"') as string });
  });
});

describe.runIf(process.geteuid?.() === 0)("a machine with other mounts", () => {
  /** Runs the program in a mount namespace, after `commands`; `$$` is the pid of the program. */
  const mounted = async (commands: string, args: readonly string[]) => {
    const words = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(" ");
    return run("unshare", ["-m", "sh", "-c", `${commands} && exec ${words}`]);
  };
  const onNetwork = () => {
    const mounts = `22 27 0:21 / / rw - ext4 /dev/vda rw\n24 22 0:24 / ${home} rw - nfs4 server:/home rw\n`;
    writeFileSync(at("mounts"), mounts);
    return `mount --bind ${at("mounts")} /proc/$$/mountinfo`;
  };

  it("a server refuses a store on a network file system before it serves", async () => {
    for (const daemon of ["auto", "off"]) {
      const refused = await mounted(onNetwork(), ["serve", "--daemon", daemon]);
      expect(refused).toMatchObject({ code: 2, stdout: "" });
      expect(refused.stderr).toContain("on a network file system (nfs4)");
    }
  });

  it("doctor names a state folder that is read-only", async () => {
    const state = at("state", "claude-agents-mcp");
    mkdirSync(state, { recursive: true, mode: 0o700 });
    const readOnly = `mount --bind ${state} ${state} && mount -o remount,bind,ro ${state}`;
    const { code, stdout } = await mounted(readOnly, ["doctor", "--json"]);
    const found = Report.parse(JSON.parse(stdout)).findings.find(({ id }) => id === "state-folder");
    expect(found).toMatchObject({ level: "error", text: expect.stringContaining("EROFS") as string });
    expect(code).toBe(1);
  });
});

describe("a package without the Claude Code of the Agent SDK", () => {
  let model: ScriptedModel;
  let main: string;

  beforeAll(async () => {
    model = await startScriptedModel();
    const folder = mkdtempSync(join(root, "package-"));
    const modules = join(folder, "node_modules");
    mkdirSync(join(modules, "@anthropic-ai"), { recursive: true });
    cpSync("dist", join(folder, "dist"), { recursive: true });
    cpSync("package.json", join(folder, "package.json"));
    symlinkSync(resolve("node_modules", "@photostructure"), join(modules, "@photostructure"));
    // Copied, because a link would lead to the Claude Code beside the original package.
    const sdk = "@anthropic-ai/claude-agent-sdk";
    cpSync(resolve("node_modules", sdk), join(modules, sdk), { recursive: true });
    main = join(folder, "dist", "cli", "main.js");
  });
  afterAll(async () => model.close());

  const useClaudeOfPath = () => {
    const { CLAUDE_CODE_MCP_CLAUDE_PATH: _, ...rest } = environment;
    environment = { ...rest, ...model.environment(at("config")) };
  };

  it("sessions run in the claude of PATH; without one, server and doctor say what prevents an installation", async () => {
    useClaudeOfPath();
    const args = ["--spares", "0"];
    const unreachable = { NPM_CONFIG_REGISTRY: "http://127.0.0.1:1/", NPM_CONFIG_FETCH_RETRIES: "0" };
    const server = await connect("modern", { args, env: { ...environment, ...unreachable }, main });
    const cwd = mkdtempSync(join(home, "work-"));
    const answer = await server.call("claude_code", { prompt: "hello", cwd, waitMs: 20_000 });
    expect(answer["status"]).toBe("idle");
    rmSync(at("bin", "claude"));
    const { result } = await server.call("claude_code", { prompt: "hello", cwd, waitMs: 20_000 });
    expect(result?.result).toContain("npm does not reach the registry");
    expect(result?.result).toContain(`Run: node '${main}' doctor --fix`);
    await server.close();
    environment = { ...environment, ...unreachable };
    const before = await run(process.execPath, [main, "doctor"]);
    expect(before).toMatchObject({ code: 0 });
    const fix = `node ${main} doctor --fix`;
    expect(before.stdout).toMatch(/The first session installs @anthropic-ai\/claude-agent-sdk-.*\n +fix: /);
    expect(before.stdout).toMatch(new RegExp(`^ +fix: \\S*${fix}$`, "m"));
    // Without a Claude Code to ask, doctor judges the login by variables and files.
    const { ANTHROPIC_API_KEY: _, ...poor } = environment;
    environment = poor;
    const fixed = await run(process.execPath, [main, "doctor", "--fix"]);
    expect(fixed.code).toBe(1);
    expect(fixed.stdout).not.toMatch(/^fixed/m);
    expect(fixed.stdout).toMatch(/^failed {3}Not fixed: The first session installs .*npm does not reach/m);
    expect(fixed.stdout).toMatch(/^error {4}No login and no key of Claude Code were found/m);
    expect(fixed.stdout).toContain("Errors: 1, warnings: 0, not fixed: 1.");
    expect(fixed.stdout).not.toMatch(/\bAppError|InstallError/);
    const [login = "", fixing = ""] = fixed.stderr.split("\n").filter((line) => !line.startsWith("Checking"));
    expect(login).toContain("No login and no key");
    expect(fixing).toMatch(/^Fixing: The first session installs/);
  });
});
