import { describe, expect, it } from "vitest";
import { atBounds } from "../../src/config/bounds.ts";
import { ConfigError } from "../../src/config/error.ts";
import {
  automaticSettings,
  clientSettings,
  daemonSettings,
  serverSettings,
  type ServerSettings,
} from "../../src/config/server-settings.ts";
import { userFilePath } from "../../src/config/state-folder.ts";
import type { Config } from "../../src/config/schema.ts";

/** Settings of the user's file, bounds, and the settings that each kind of client may give. */

const HOME = { HOME: "/home/ann", USERPROFILE: "C:\\Users\\ann" };
const FILE = userFilePath(HOME);

interface Given {
  readonly user?: unknown;
  readonly argv?: string[];
  readonly env?: Record<string, string>;
}

function fileReader(user: unknown): (path: string) => string {
  return (path) => {
    if (path !== FILE) return '{"logLevel":"warn"}';
    if (user === undefined) throw Object.assign(new Error("no such file"), { code: "ENOENT" });
    return typeof user === "string" ? user : JSON.stringify(user);
  };
}

function server({ argv = [], env = {}, user }: Given): ServerSettings {
  return serverSettings({ argv, env: { ...HOME, ...env }, readFile: fileReader(user) });
}

function daemon({ argv = [], env = {}, user }: Given): ServerSettings {
  return daemonSettings({ argv, env: { ...HOME, ...env }, readFile: fileReader(user) });
}

/** Returns the settings of a client of the daemon `of`. */
function client(own: Given, of: ServerSettings = daemon({})): Config {
  return clientSettings(of, {
    argv: own.argv ?? [],
    env: own.env ?? {},
    readFile: fileReader(undefined),
    cwd: "/work",
  });
}

describe("the user's file", () => {
  it("the user's file is in the configuration folder of each operating system", () => {
    expect(userFilePath({ HOME: "/home/ann" }, "linux")).toBe("/home/ann/.config/claude-agents-mcp/config.json");
    expect(userFilePath({ HOME: "/h", XDG_CONFIG_HOME: "/c" }, "darwin")).toBe("/c/claude-agents-mcp/config.json");
    expect(userFilePath({ HOME: "/h", XDG_CONFIG_HOME: "c" }, "linux")).toBe(
      "/h/.config/claude-agents-mcp/config.json",
    );
    expect(userFilePath({ APPDATA: "C:\\R" }, "win32")).toBe("C:\\R\\claude-agents-mcp\\config.json");
    expect(userFilePath({ USERPROFILE: "C:\\U" }, "win32")).toBe(
      "C:\\U\\AppData\\Roaming\\claude-agents-mcp\\config.json",
    );
  });

  it("the user's file is optional; variables, `--config` files and flags override its values", () => {
    expect(server({}).config.maxLive).toBeUndefined();
    const user = { maxLive: 3, turnMaxMs: 5000, logLevel: "error" };
    expect(server({ user }).config).toMatchObject({ maxLive: 3, turnMaxMs: 5000, logLevel: "error" });
    expect(server({ user, argv: ["--turn-max-ms", "6000", "--config=/file"] }).config).toMatchObject({
      turnMaxMs: 6000,
      logLevel: "warn",
    });
    expect(server({ user, env: { CLAUDE_CODE_MCP_MAX_LIVE: "4" } }).config.maxLive).toBe(4);
  });

  it.each<[unknown, string]>([
    ["{", `${FILE} is not JSON`],
    [{ http: true }, `"http" in ${FILE}: every server of yours would listen on this address.`],
    [{ maxLife: 1 }, `Unknown key "maxLife" in ${FILE}. Did you mean maxLive?`],
    [{ maxLive: 0 }, `"maxLive" in ${FILE} is 0: must be`],
    [{ bounds: [] }, `"bounds" in ${FILE} must be an object`],
    [{ bounds: { maxLive: 3 } }, `"bounds.maxLive" in ${FILE} has no effect`],
    [{ bounds: { turnMaxMs: 1 } }, `"bounds.turnMaxMs" in ${FILE} is 1: must be`],
  ])("the user's file is refused if it is %j", (user, message) => {
    expect(() => server({ user })).toThrow(ConfigError);
    expect(() => server({ user })).toThrow(message);
  });
});

describe("bounds", () => {
  const user = {
    bounds: {
      allowBypass: false,
      turnMaxMs: 5000,
      maxWaitMs: 4000,
      unattended: "deny",
      toolsets: ["agent", "query"],
      callerApproves: "edits",
      claudePath: "bin/claude",
      denyRules: ["WebFetch"],
    },
  };
  const loose = "--allow-bypass --turn-max-ms=9000 --toolsets=agent,chat --caller-approves=all --deny-rules=Bash(x)";

  it("bounds limit looser flags of a server and of a daemon's client; tighter flags stay", () => {
    const bounded = {
      allowBypass: false,
      turnMaxMs: 5000,
      maxWaitMs: 4000,
      unattended: "deny",
      toolsets: ["agent"],
      callerApproves: "edits",
      claudePath: expect.stringMatching(/claude-agents-mcp.bin.claude$/) as string,
    };
    expect(server({ user, argv: loose.split(" ") }).config).toMatchObject(bounded);
    expect(client({ argv: loose.split(" ") }, daemon({ user }))).toMatchObject(bounded);
    const tighter = ["--turn-max-ms=2000", "--max-wait-ms=3000", "--toolsets=query", "--caller-approves=none"];
    expect(client({ argv: tighter }, daemon({ user }))).toMatchObject({
      turnMaxMs: 2000,
      maxWaitMs: 3000,
      toolsets: ["query"],
      callerApproves: "none",
    });
  });

  it("bounds leave rules to the policy: a client keeps its own, and `atBounds` adds those of the bounds", () => {
    const of = daemon({ user });
    const own = client({ argv: loose.split(" ") }, of);
    expect(own.denyRules).toEqual(["Bash(x)"]);
    expect(atBounds(own, of.bounds)).toMatchObject({
      denyRules: ["Bash(x)", "WebFetch"],
      turnMaxMs: 5000,
      trustDirs: [],
    });
  });

  it("bounds of queries can disable queries and limit time and size, but not what a call may replace", () => {
    const of = daemon({ user: { bounds: { query: { maxBytes: 20_000, maxTurns: 1 } } } });
    const argv = ['--query={"maxExecutionMs":900000,"maxBytes":30000,"maxTurns":9}'];
    expect(client({ argv }, of).query).toMatchObject({ maxExecutionMs: 900_000, maxBytes: 20_000, maxTurns: 9 });
    expect(client({}, daemon({ user: { bounds: { query: { enabled: false } } } })).query.enabled).toBe(false);
  });

  it("a client with no toolset within bounds is refused; the error names the source of the bound", () => {
    const ofUser = `"toolsets" of "bounds" in ${FILE} allows agent, query. Name some of these.`;
    const chat = { argv: ["--toolsets=chat"] };
    expect(() => client(chat, daemon({ user }))).toThrow(`--toolsets: chat is out of bounds. ${ofUser}`);
    expect(() => server({ user: { ...user, toolsets: ["chat"] } })).toThrow(
      `"toolsets" in ${FILE}: chat is out of bounds. ${ofUser}`,
    );
    const named = daemon({ env: { CLAUDE_CODE_MCP_TOOLSETS: "query" } });
    const ofDaemon = "The start of the daemon, by CLAUDE_CODE_MCP_TOOLSETS, allows query. Name some of these.";
    expect(() => client({}, named)).toThrow(`The default of toolsets: agent is out of bounds. ${ofDaemon}`);
    expect(client({ argv: ["--toolsets=all"] }, daemon({ user })).toolsets).toEqual(["agent", "query"]);
  });

  it("terms given at the start of a named daemon are bounds of its clients", () => {
    const of = daemon({ user, argv: ["--turn-max-ms=3000", "--sandbox=required", "--max-live=7"] });
    expect(of.bounds).toMatchObject({ turnMaxMs: 3000, sandbox: "required", allowBypass: false });
    expect(of.bounds).not.toHaveProperty("maxLive");
    expect(client({}, of)).toMatchObject({ turnMaxMs: 3000, sandbox: "required", maxLive: 7 });
    expect(() => daemon({ user, argv: ["--deny-rules=Bash"] })).toThrow("denyRules: the bounds of the user's file");
  });

  it.each<[string, string]>([
    ["--deny-rules=Bash", "--deny-rules would apply to no client of this daemon"],
    ['--query={"maxTurns":1}', 'Set "query" in "bounds" of'],
  ])("an automatic daemon is refused with a term that would apply to no client: %s", (flag, message) => {
    const automatic = (...argv: string[]) => automaticSettings({ argv, env: HOME, readFile: fileReader(user) });
    expect(() => automatic(flag)).toThrow(message);
    expect(automatic("--max-live=7").config).toMatchObject({ maxLive: 7, turnMaxMs: 5000 });
  });
});

describe("a client of a daemon", () => {
  it("a client of a daemon has its own terms and the daemon's server settings", () => {
    const of = daemon({ user: { maxLive: 3, spares: 2, turnMaxMs: 7000 }, argv: ["--spares=4"] });
    expect(client({ env: { CLAUDE_CODE_MCP_UNATTENDED: "deny" }, argv: ["--allow-dir=x"] }, of)).toMatchObject({
      unattended: "deny",
      turnMaxMs: 7000,
      maxLive: 3,
      spares: 4,
      allowDirs: [expect.stringMatching(/^.{0,2}.work.x$/) as string],
    });
  });

  it.each<[Given, string]>([
    [{ argv: ["--max-live", "3"] }, '--max-live belongs to the server, which has other clients, too. Set "maxLive" in'],
    [{ env: { CLAUDE_CODE_MCP_LOG_LEVEL: "debug" } }, "CLAUDE_CODE_MCP_LOG_LEVEL belongs to the server"],
    [{ argv: ["--config=/file"] }, '"logLevel" in /file belongs to the server'],
    [{ argv: ["--notify-url=https://x.org"] }, `Set "notifyUrl" in ${FILE}, which a daemon reads at its start`],
  ])("a client of a daemon may not give a server setting: %j", (own, message) => {
    expect(() => client(own)).toThrow(ConfigError);
    expect(() => client(own)).toThrow(message);
    expect(() => server(own)).not.toThrow("belongs");
  });
});
