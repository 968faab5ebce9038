import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

import { loadConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/schema.ts";

interface Sources {
  argv?: string[];
  env?: Record<string, string>;
  file?: unknown;
}

function load({ argv = [], env = {}, file = {} }: Sources): Config {
  const named = { CLAUDE_CODE_MCP_CONFIG: "/settings.json", ...env };
  return loadConfig({ argv, env: named, readFile: () => JSON.stringify(file) });
}

describe("values of lists and of `--http`", () => {
  it("the values of a list may be separated by commas or by the separator of PATH, if no value can contain it", () => {
    for (const text of ["agent,query", "agent:query", "agent;query"]) {
      expect(load({ env: { CLAUDE_CODE_MCP_TOOLSETS: text } }).toolsets).toEqual(["agent", "query"]);
    }
    const dirs = [resolve("/a"), resolve("/b, c"), join(homedir(), "d")];
    const paths = ["/a", "/b, c", "~/d"];
    expect(load({ env: { CLAUDE_CODE_MCP_ALLOW_DIRS: paths.join(",") } }).allowDirs).toEqual(dirs);
    expect(load({ env: { CLAUDE_CODE_MCP_ALLOW_DIRS: paths.join(delimiter) } }).allowDirs).toEqual(dirs);
    expect(load({ argv: ["--allow-dir", "/a,/b"] }).allowDirs).toEqual([resolve("/a,/b")]);
    const rules = "Bash(git push:*),Skill(a:b)";
    expect(load({ env: { CLAUDE_CODE_MCP_DENY_RULES: rules } }).denyRules).toEqual(rules.split(","));
  });

  it.each<[unknown, string | undefined]>([
    ["1", "127.0.0.1:7465"],
    ["true", "127.0.0.1:7465"],
    ["0", undefined],
    ["false", undefined],
    ["7466", "7466"],
    ["", "file:1"],
  ])("the variable of `--http` may also be a boolean: %j", (text, http) => {
    const file = { http: "file:1" };
    expect(load({ env: { CLAUDE_CODE_MCP_HTTP: String(text) }, file }).http).toBe(http);
  });

  it("the key `http` of a file may also be a boolean", () => {
    expect(load({ file: { http: true } }).http).toBe("127.0.0.1:7465");
    expect(load({ file: { http: false } }).http).toBeUndefined();
    expect(() => load({ file: { http: 7465 } })).toThrow(
      "is 7465: must be a non-empty text; in a variable or the file also true or 1 for 127.0.0.1:7465",
    );
    // A flag is taken literally: port 0 selects a free port.
    expect(load({ argv: ["--http", "0"] }).http).toBe("0");
  });
});

it("a relative path starts from the folders of a daemon's client, not from those of the daemon", () => {
  const from = { cwd: resolve("/srv"), home: resolve("/home/ann"), readFile: () => '{"trustDirs":["in-file","~/t"]}' };
  const config = loadConfig({
    ...from,
    argv: ["--allow-dir", "here", "--allow-dir=~/a", "--config", "conf/server.json"],
    env: { CLAUDE_CODE_MCP_CLAUDE_PATH: "bin/claude" },
  });
  expect(config.allowDirs).toEqual([resolve("/srv/here"), resolve("/home/ann/a")]);
  expect(config.claudePath).toBe(resolve("/srv/bin/claude"));
  expect(config.trustDirs).toEqual([resolve("/srv/conf/in-file"), resolve("/home/ann/t")]);
});

describe("the keys of `query`", () => {
  it("each key of `query` has the value of the highest source; paths start from the folder of their source", () => {
    const env = { CLAUDE_CODE_MAX_TURNS: "3", CLAUDE_CODE_MCP_QUERY: '{"maxTurns":4,"model":"opus","cwd":"~/x"}' };
    const file = { query: { maxTurns: 5, maxMessages: 6, cwd: "here", allowedTools: ["Read"] } };
    expect(load({ argv: ['--query={"model":"haiku"}'], env, file }).query).toMatchObject({
      maxTurns: 3,
      model: "haiku",
      cwd: join(homedir(), "x"),
      maxMessages: 6,
      allowedTools: ["Read"],
    });
    expect(load({ file }).query.cwd).toBe(resolve("/here"));
  });

  it.each<[Sources, string]>([
    [{ argv: ['--query={"maxTurn":3}'] }, 'Unknown key "maxTurn" in --query. Did you mean maxTurns?'],
    [{ argv: ['--query={"maxTurns":0}'] }, "maxTurns of --query is 0: must be a whole number from 1 to 100000."],
    [{ argv: ["--query=fast"] }, "--query cannot be used"],
    [{ file: { query: { cwd: 1 } } }, 'cwd of "query" in /settings.json is 1: must be a path.'],
    [{ env: { CLAUDE_CODE_MAX_TURNS: "x" } }, 'CLAUDE_CODE_MAX_TURNS is "x": must be a whole number from'],
    [{ argv: ["--query-max-turns=3"] }, "--query-max-turns is no longer a setting: it is a key of --query"],
  ])("an invalid `query` setting is refused by name: %j", (sources, message) => {
    expect(() => load(sources)).toThrow(message);
  });
});
