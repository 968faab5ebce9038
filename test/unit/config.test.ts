import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";

import { describe, expect, it } from "vitest";

import { ConfigError } from "../../src/config/error.ts";
import { loadConfig } from "../../src/config/load.ts";
import { SETTINGS } from "../../src/config/schema.ts";
import type { Config } from "../../src/config/schema.ts";

interface Sources {
  argv?: string[];
  env?: Record<string, string>;
  file?: unknown;
}

const FILE = resolve("/settings/server.json");

/** Writes a `file` that is not a string as JSON. `CLAUDE_CODE_MCP_CONFIG` names the file. */
function load({ argv = [], env = {}, file }: Sources): Config {
  const content = typeof file === "string" ? file : JSON.stringify(file);
  const named: Record<string, string> = file === undefined ? {} : { CLAUDE_CODE_MCP_CONFIG: FILE };
  return loadConfig({ argv, env: { ...named, ...env }, readFile: (path) => (path === FILE ? content : missing(path)) });
}

function missing(path: string): never {
  throw new Error(`ENOENT: no such file or directory, open '${path}'`);
}

function refusal(sources: Sources): string {
  try {
    load(sources);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return "not refused";
}

describe("the settings", () => {
  it("settings that no source gives have their defaults", () => {
    expect(load({})).toEqual({
      turnMaxMs: 14_400_000,
      unattended: "wait",
      unattendedMaxUsd: 10,
      idleProcessMs: 1_800_000,
      approvals: ["user", "caller", "console:0"],
      permissionMaxMs: 1_800_000,
      allowBypass: false,
      allowRules: [],
      askRules: [],
      denyRules: [],
      sandbox: "off",
      allowDiskResume: false,
      allowSensitiveSessionDetails: false,
      dynamicDescription: false,
      allowDirs: [],
      trustDirs: [],
      spares: 1,
      labels: [],
      sharedFolders: [],
      maxDepth: 1,
      processIsolation: "none",
      retentionDays: 30,
      retentionMegabytes: 2_048,
      receipt: "on",
      eventWebhooks: "public",
      verify: [],
      profiles: {},
      onLimit: "report",
      leaseMs: 45_000,
      limitWaitMaxMs: 21_600_000,
      logLevel: "info",
      toolsets: ["agent"],
      query: {
        enabled: true,
        permissionMode: "bypassPermissions",
        maxMessages: 100,
        includeSystemMessages: true,
        allowedTools: [],
        maxExecutionMs: 300_000,
        maxBytes: 262_144,
      },
      allowHosts: [],
      allowOrigins: [],
      auth: true,
      attended: false,
      console: true,
      principals: {},
      rateLimit: 600,
      drainMs: 10_000,
    });
  });

  it("a setting of several names takes names separated by commas, or a list in a file", () => {
    expect(load({ argv: ["--toolsets", "agent, query"] }).toolsets).toEqual(["agent", "query"]);
    expect(load({ env: { CLAUDE_CODE_MCP_TOOLSETS: "all" } }).toolsets).toEqual(["all"]);
    expect(load({ file: { toolsets: ["chat"], query: { allowedTools: ["Read", "Bash(git *)"] } } })).toMatchObject({
      toolsets: ["chat"],
      query: { allowedTools: ["Read", "Bash(git *)"] },
    });
    const some = "must be some of agent, query, chat, configure, all";
    expect(() => load({ argv: ["--toolsets", "agent,qeury"] })).toThrow(`--toolsets is ["agent","qeury"]: ${some}`);
    expect(() => load({ env: { CLAUDE_CODE_ALLOWED_TOOLS: "Read,,Grep" } })).toThrow("CLAUDE_CODE_ALLOWED_TOOLS is");
    expect(load({ env: { CLAUDE_CODE_ALLOWED_TOOLS: "Read, Bash(echo a, b),Grep" } }).query.allowedTools).toEqual([
      "Read",
      "Bash(echo a, b)",
      "Grep",
    ]);
    expect(() => load({ argv: ["--toolsets", "query", '--query={"enabled":false}'] })).toThrow(
      "enabled of --query is false: no tool would be listed, because --toolsets names query only.",
    );
    expect(() => load({ env: { CLAUDE_CODE_MCP_TOOLSETS: "query", CLAUDE_CODE_ENABLE: "false" } })).toThrow(
      "CLAUDE_CODE_ENABLE is false: no tool would be listed, because CLAUDE_CODE_MCP_TOOLSETS names query only.",
    );
    expect(load({ env: { CLAUDE_CODE_ENABLE: "false", CLAUDE_CODE_MAX_TURNS: "3" } })).toMatchObject({
      query: { enabled: false, maxTurns: 3 },
    });
  });

  it("a flag overrides a variable, and a variable overrides the file, key by key", () => {
    const sources = {
      argv: ["--max-wait-ms", "3000"],
      env: { CLAUDE_CODE_MCP_MAX_WAIT_MS: "2000", CLAUDE_CODE_MCP_PERMISSION_MAX_MS: "2000" },
      file: { maxWaitMs: 1000, permissionMaxMs: 1000, turnMaxMs: 1000 },
    };
    expect(load(sources)).toMatchObject({ maxWaitMs: 3000, permissionMaxMs: 2000, turnMaxMs: 1000 });
  });

  it("settings are frozen, including lists", () => {
    const config = load({ argv: ["--allow-dir", "/a"] });
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.allowDirs)).toBe(true);
    expect(Object.isFrozen(load({}).trustDirs)).toBe(true);
  });

  it("there are 60 settings, each of a connection, a server or a client's process", () => {
    const count = (of: string) => SETTINGS.filter((each) => each.of === of).length;
    expect([count("term"), count("server"), count("client"), SETTINGS.length]).toEqual([22, 34, 4, 60]);
  });

  it("each setting has its own flag, variable, key and description", () => {
    for (const field of ["flag", "variable", "key", "meaning"] as const) {
      expect(new Set(SETTINGS.map((setting) => setting[field])).size).toBe(SETTINGS.length);
    }
    for (const { variable, flag, meaning } of SETTINGS) {
      expect(variable).toMatch(/^CLAUDE_CODE_[A-Z_]+$/);
      expect(flag).toMatch(/^[a-z-]+$/);
      expect(meaning).toMatch(/^[A-Z].*\.$/);
    }
  });
});

describe("values of settings", () => {
  it("the value of a flag may follow an equals sign or be the next argument, and the last flag wins", () => {
    const argv = ["--max-wait-ms", "1000", "--max-wait-ms=2000", "--log-level", "warn"];
    expect(load({ argv })).toMatchObject({ maxWaitMs: 2000, logLevel: "warn" });
  });

  it.each<[string, Sources, boolean]>([
    ["a bare flag", { argv: ["--allow-bypass"] }, true],
    ["a flag with a value", { argv: ["--allow-bypass=0"], env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: "1" } }, false],
    ["a negated flag", { argv: ["--no-allow-bypass"], env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: "true" } }, false],
    ["a variable that is 1", { env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: "1" } }, true],
    [
      "a variable that is false",
      { env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: "false" }, file: { allowBypass: true } },
      false,
    ],
    ["an empty variable", { env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: "" }, file: { allowBypass: true } }, true],
  ])("a boolean is read from %s", (_, sources, allowBypass) => {
    expect(load(sources).allowBypass).toBe(allowBypass);
  });

  it("a list grows flag by flag and replaces the list of a variable", () => {
    const env = { CLAUDE_CODE_MCP_ALLOW_DIRS: ["/c", "/d"].join(delimiter) };
    expect(load({ env }).allowDirs).toEqual([resolve("/c"), resolve("/d")]);
    const argv = ["--allow-dir", "/a", "--allow-dir=/b/"];
    expect(load({ argv, env }).allowDirs).toEqual([resolve("/a"), resolve("/b")]);
  });

  it("a path becomes absolute: from the home folder, the current folder or the folder of the file", () => {
    expect(load({ argv: ["--trust-dir=~", "--trust-dir=~/a", "--trust-dir=b", "--trust-dir=~c"] }).trustDirs).toEqual([
      homedir(),
      join(homedir(), "a"),
      resolve("b"),
      resolve("~c"),
    ]);
    const config = load({ file: { trustDirs: ["a", "~/b"], claudePath: "../claude" } });
    expect(config.trustDirs).toEqual([resolve("/settings/a"), join(homedir(), "b")]);
    expect(config.claudePath).toBe(resolve("/claude"));
  });
});

describe("invalid values", () => {
  const ms = "must be a whole number of ms from 1000 to 3600000.";
  it.each<[string, Sources, string]>([
    ["a word for a number", { argv: ["--max-wait-ms", "45s"] }, `--max-wait-ms is "45s": ${ms}`],
    ["a negative number", { argv: ["--max-wait-ms", "-5"] }, `--max-wait-ms is -5: ${ms}`],
    ["a fraction", { argv: ["--max-wait-ms=2000.5"] }, `--max-wait-ms is 2000.5: ${ms}`],
    ["an empty number", { argv: ["--max-wait-ms="] }, `--max-wait-ms is "": ${ms}`],
    [
      "too small a number",
      { env: { CLAUDE_CODE_MCP_MAX_WAIT_MS: "999" } },
      `CLAUDE_CODE_MCP_MAX_WAIT_MS is 999: ${ms}`,
    ],
    ["too large a number", { file: { maxWaitMs: 3_600_001 } }, `"maxWaitMs" in ${FILE} is 3600001: ${ms}`],
    ["a number as text in the file", { file: { maxWaitMs: "2000" } }, `"maxWaitMs" in ${FILE} is "2000": ${ms}`],
    [
      "a time too long for a timer",
      { argv: ["--turn-max-ms=2147483648"] },
      "--turn-max-ms is 2147483648: must be a whole number of ms from 1000 to 2147483647.",
    ],
    [
      "a word for a boolean",
      { env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: "constructor" } },
      'CLAUDE_CODE_MCP_ALLOW_BYPASS is "constructor": must be true or false',
    ],
    ["a value of a negated flag", { argv: ["--no-allow-bypass=1"] }, "--no-allow-bypass takes no value."],
    ["an unknown choice", { argv: ["--sandbox", "never"] }, '--sandbox is "never": must be one of off, required.'],
    ["a forgotten value", { argv: ["--sandbox", "--allow-bypass"] }, "--sandbox needs a value: one of off, required."],
    ["a forgotten last value", { argv: ["--max-wait-ms"] }, "--max-wait-ms needs a value: a whole number of ms"],
    [
      "an empty directory",
      { argv: ["--allow-dir=/a", "--allow-dir="] },
      `--allow-dir is ["${resolve("/a")}",""]: must`,
    ],
    [
      "an empty list of directories",
      { env: { CLAUDE_CODE_MCP_ALLOW_DIRS: "" } },
      'CLAUDE_CODE_MCP_ALLOW_DIRS is [""]: must be directory paths, none of them empty',
    ],
    [
      "a word in place of directories",
      { file: { trustDirs: "any" } },
      `"trustDirs" in ${FILE} is "any": must be directory paths`,
    ],
    [
      "a directory that is not a string",
      { file: { allowDirs: [1] } },
      `"allowDirs" in ${FILE} is [1]: must be directory paths`,
    ],
    [
      "a rule with a path that only Edit rules can have",
      { argv: ["--deny-rules", "Bash(rm:*),Write(src/**)"] },
      "--deny-rules cannot be used: the rule Write(src/**) has a path, which only Edit rules can have. Write Edit(src/**).",
    ],
    [
      "a rule that allows the tools of any server",
      { env: { CLAUDE_CODE_MCP_ALLOW_RULES: "mcp__*" } },
      "would allow the tools of any MCP",
    ],
    ["an unknown flag", { argv: ["--max-wait", "2000"] }, "Unknown flag --max-wait. Did you mean --max-wait-ms?"],
    [
      "an unknown negated flag",
      { argv: ["--no-allow-bypas"] },
      "Unknown flag --no-allow-bypas. Did you mean --no-allow",
    ],
    ["a negated flag that is not a boolean", { argv: ["--no-sandbox"] }, "Unknown flag --no-sandbox."],
    ["an unknown short flag", { argv: ["-x"] }, 'Unknown flag -x. "claude-agents-mcp help" lists all flags.'],
    ["a short flag with a near match", { argv: ["-v"] }, "Unknown flag -v. Did you mean --version?"],
    ["a misspelt flag of all commands", { argv: ["--hlep"] }, "Unknown flag --hlep. Did you mean --help?"],
    [
      "an argument that is not a flag",
      { argv: ["--allow-bypass", "false"] },
      'Unexpected argument "false": only flags',
    ],
    [
      "an unknown key in the file",
      { file: { maxWait: 1 } },
      `Unknown key "maxWait" in ${FILE}. Did you mean maxWaitMs?`,
    ],
    ["the key `config` in the file", { file: { config: "x" } }, `Unknown key "config" in ${FILE}.`],
    ["a file of invalid JSON", { file: "{\n  maxWaitMs: 1\n}" }, `${FILE} is not JSON: `],
    ["a file that is not a JSON object", { file: "[]" }, `${FILE} must hold one JSON object of settings.`],
    ["a missing file", { argv: ["--config=/none"] }, "The file of --config cannot be read: ENOENT"],
    ["an empty file name", { argv: ["--config="] }, '--config is "": must be a path.'],
  ])("%s is refused in one line", (_, sources, message) => {
    const line = refusal(sources);
    expect(line).toContain(message);
    expect(line).not.toContain("\n");
  });

  it("the message for a long value is cut to less than 200 characters", () => {
    expect(refusal({ argv: [`--sandbox=${"x".repeat(5000)}`] }).length).toBeLessThan(200);
  });
});

describe("the settings file", () => {
  it("the file of `--config` is read, even if a variable names another, and may begin with a byte order mark", () => {
    const env = { CLAUDE_CODE_MCP_CONFIG: "/none" };
    expect(load({ argv: ["--config", FILE], env, file: '\uFEFF{"maxDepth": 2}' }).maxDepth).toBe(2);
  });
});
