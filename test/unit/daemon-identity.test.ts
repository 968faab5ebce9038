import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PATH_SETTINGS } from "../../src/config/paths.ts";
import { SETTINGS } from "../../src/config/schema.ts";
import { daemonEnvironment } from "../../src/daemon/environment.ts";
import { identityOf } from "../../src/daemon/identity.ts";

/** Who shares a daemon. */

let root: string;
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), "ccm-identity-"))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const HOME = { HOME: "/home/ann", PATH: "/usr/bin:/bin" };

async function nameOf(start: { argv?: string[]; cwd?: string; env?: Record<string, string> } = {}): Promise<string> {
  const { argv = [], cwd = "/project", env = {} } = start;
  return (await identityOf({ argv, cwd, env: { ...HOME, ...env }, stateFolder: root })).name;
}

it("the paths that a proxy makes absolute are those of the table of settings", () => {
  const paths = SETTINGS.filter(({ reading }) => ["directories", "path", "store"].includes(reading));
  const listed = paths.map(({ flag, reading, variable }) => ({
    flag,
    variable,
    ...(reading === "directories" && { isList: true }),
  }));
  expect(PATH_SETTINGS.toSorted(byFlag)).toEqual(listed.toSorted(byFlag));
});

const byFlag = (one: { flag: string }, other: { flag: string }) => one.flag.localeCompare(other.flag);

describe("clients share a daemon when they differ only in", () => {
  it.each<[string, Record<string, string>]>([
    [
      "the terminal",
      { TERM: "xterm", TERM_PROGRAM: "iTerm.app", COLUMNS: "80", TMUX: "/tmp/x", SSH_TTY: "/dev/pts/1" },
    ],
    ["the shell", { PWD: "/x", OLDPWD: "/y", SHLVL: "3", _: "/usr/bin/node" }],
    ["the editor", { VSCODE_PID: "7", CURSOR_TRACE_ID: "x", INSIDE_EMACS: "29" }],
    ["what npx adds", { npm_command: "exec", INIT_CWD: "/x", NODE: "/usr/bin/node", COLOR: "0" }],
    ["a Claude Code that is the client", { CLAUDECODE: "1", CLAUDE_CODE_ENTRYPOINT: "cli", CLAUDE_CODE_SSE_PORT: "1" }],
    ["how long they wait for it", { CLAUDE_CODE_MCP_DAEMON: "auto" }],
    ["functions that a shell exports", { "BASH_FUNC_module%%": "() { :; }" }],
  ])("%s", async (_, env) => {
    expect(await nameOf({ env })).toBe(await nameOf());
  });

  it("the spelling of a path", async () => {
    expect(await nameOf({ argv: ["--store", "x/../s.db"], cwd: "/a" })).toBe(
      await nameOf({ argv: ["--store", "/a/s.db"], cwd: "/b" }),
    );
    expect(await nameOf({ env: { CLAUDE_CODE_MCP_ALLOW_DIRS: "one:/two" }, cwd: "/a" })).toBe(
      await nameOf({ env: { CLAUDE_CODE_MCP_ALLOW_DIRS: "/a/one:/two" }, cwd: "/b" }),
    );
  });

  it("flags that the proxy alone reads", async () => {
    const own = ["--daemon=auto", "--spares", "2", "--daemon", "auto"];
    expect(await nameOf({ argv: own })).toBe(await nameOf({ argv: ["--spares", "2"] }));
  });

  it("the program folders of npm in PATH", async () => {
    const bins = "/x/node_modules/.bin:/usr/lib/node_modules/npm/node_modules/@npmcli/run-script/lib/node-gyp-bin";
    expect(await nameOf({ env: { PATH: `${bins}:${HOME.PATH}` } })).toBe(await nameOf());
  });
});

describe("clients have a daemon each when they differ in", () => {
  it.each<[string, Record<string, string>]>([
    ["the account", { CLAUDE_CONFIG_DIR: "/home/ann/project" }],
    ["the API", { ANTHROPIC_BASE_URL: "http://127.0.0.1:1" }],
    ["the key", { ANTHROPIC_API_KEY: "sk-1" }],
    ["a proxy", { HTTPS_PROXY: "http://127.0.0.1:1" }],
    ["what their commands find", { PATH: "/opt/bin:/usr/bin:/bin" }],
    ["an author", { GIT_AUTHOR_NAME: "Ann" }],
    ["a setting", { CLAUDE_CODE_MCP_MAX_LIVE: "3" }],
    ["the agent of SSH", { SSH_AUTH_SOCK: "/tmp/agent" }],
    ["npm's programs behind others in PATH", { PATH: "/usr/bin:/bin:/x/node_modules/.bin" }],
  ])("%s", async (_, env) => {
    expect(await nameOf({ env })).not.toBe(await nameOf());
  });

  it("a flag, the order of flags, a relative path and the file of settings", async () => {
    const file = join(root, "settings.json");
    writeFileSync(file, "{}");
    const named = ["--config", file];
    const names = [
      await nameOf(),
      await nameOf({ argv: ["--spares", "2"] }),
      await nameOf({ argv: ["--spares", "3"] }),
      await nameOf({ argv: ["--spares", "2", "--max-live", "4"] }),
      await nameOf({ argv: ["--store", "s.db"], cwd: "/a" }),
      await nameOf({ argv: ["--store", "s.db"], cwd: "/b" }),
      await nameOf({ argv: named }),
    ];
    writeFileSync(file, '{"spares": 2}');
    names.push(await nameOf({ argv: named }));
    mkdirSync(join(root, "other"));
    names.push((await identityOf({ argv: [], cwd: "/", env: HOME, stateFolder: join(root, "other") })).name);
    expect(new Set(names).size).toBe(names.length);
  });
});

it("a daemon names itself as its clients do: what it is given gives the same name again", async () => {
  const env = { ...HOME, TERM: "xterm", CLAUDE_CODE_MCP_STORE: "s.db", FOO: "bar" };
  const first = await identityOf({ argv: ["--allow-dir=src", "--spares", "2"], cwd: "/a", env, stateFolder: root });
  const { argv, environment } = first;
  expect(argv).toEqual(["--allow-dir=/a/src", "--spares", "2"]);
  expect(environment).toEqual({ ...HOME, CLAUDE_CODE_MCP_STORE: "/a/s.db", FOO: "bar" });
  expect(await identityOf({ argv, cwd: "/elsewhere", env: environment, stateFolder: root })).toEqual(first);
  expect(daemonEnvironment(environment)).toEqual(environment);
});

it("on Windows names of variables are the same in any case, and those that no shell passes on are taken over", () => {
  const bins = String.raw`C:\x\node_modules\.bin`;
  const own = { Path: String.raw`C:\Windows`, "ProgramFiles(x86)": String.raw`C:\Program Files (x86)` };
  const others = { Wt_Session: "1", Term_Program: "vscode", Npm_Command: "exec", ClaudeCode: "1" };
  expect(daemonEnvironment({ ...own, ...others, Path: `${bins};${own.Path}` }, "win32")).toEqual(own);
  expect(daemonEnvironment({ ...own, ...others }, "linux")).toEqual({
    Path: own.Path,
    Wt_Session: "1",
    Term_Program: "vscode",
    Npm_Command: "exec",
    ClaudeCode: "1",
  });
});

it("traits tell by what daemons differ, and hold no value of a variable or flag", async () => {
  const secret = "sk-ant-secret";
  const start = { cwd: "/a", stateFolder: root, argv: ["--spares", "2"] };
  const one = await identityOf({ ...start, env: { ...HOME, ANTHROPIC_API_KEY: secret } });
  const other = await identityOf({ ...start, argv: ["--spares", "3"], env: HOME });
  const names = [...new Set([...Object.keys(one.traits), ...Object.keys(other.traits)])];
  expect(names.filter((name) => one.traits[name] !== other.traits[name])).toEqual(["--spares", "ANTHROPIC_API_KEY"]);
  expect(names).toEqual(
    expect.arrayContaining(["package version", "Node program", "umask of the process", "user and groups"]),
  );
  expect(JSON.stringify(one)).toContain(secret);
  expect(JSON.stringify({ ...one, environment: {} })).not.toContain(secret);
});
