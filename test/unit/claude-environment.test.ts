import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import { bundledClaudes } from "../../src/claude/claude-files.ts";
import { checkAddedVariables, childEnvironment, identify } from "../../src/claude/child-environment.ts";
import { OUTER_SESSION_PREFIXES, OUTER_SESSION_VARIABLES } from "../../src/domain/outer-session.ts";

it("each variable name of an outer session occurs in Claude Code's binary", () => {
  const path = bundledClaudes()[0];
  if (path === undefined) throw new Error("no binary: npm ci installs it");
  const binary = readFileSync(path);
  const names = [...OUTER_SESSION_VARIABLES, ...OUTER_SESSION_PREFIXES];
  expect(names.filter((name) => !binary.includes(name))).toEqual([]);
});

describe("the caller's additions to the environment", () => {
  it("variables of the caller override the defaults of the server", () => {
    const added = { MCP_TIMEOUT: "1", CLAUDE_CONFIG_DIR: "/mine", CLAUDE_AGENT_SDK_CLIENT_APP: "mine" };
    expect(childEnvironment({}, { depth: 0, configDir: "/c", added })).toMatchObject(added);
  });

  it("a variable by which Claude Code would go on with an interrupted turn is not inherited", () => {
    const own = { CLAUDE_CODE_RESUME_INTERRUPTED_TURN: "1", OTHER: "1" };
    expect(childEnvironment(own, { depth: 0 })).not.toHaveProperty("CLAUDE_CODE_RESUME_INTERRUPTED_TURN");
    expect(childEnvironment(own, { depth: 0 })).toMatchObject({ OTHER: "1" });
  });

  it("four variables that belong to the server are refused, also in lower case", () => {
    const names = ["CLAUDE_CODE_MCP_DEPTH", "CLAUDE_CODE_MCP_PROCESS", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"];
    for (const name of [...names, "CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "claude_code_mcp_depth"]) {
      expect(() => checkAddedVariables({ [name]: "1" })).toThrow(`env.${name}: is set by the server`);
    }
    expect(() => checkAddedVariables({ MCP_TIMEOUT: "5" })).not.toThrow();
  });
});

describe("the account that pays for a session", () => {
  const keys = { ANTHROPIC_AUTH_TOKEN: "t", ANTHROPIC_API_KEY: "k", CLAUDE_CODE_OAUTH_TOKEN: "o" };
  it.each<[string, Record<string, string>]>([
    ["Amazon Bedrock", { CLAUDE_CODE_USE_BEDROCK: "1", CLAUDE_CODE_USE_VERTEX: "1", ...keys }],
    ["Google Vertex", { CLAUDE_CODE_USE_VERTEX: "1", ...keys }],
    ["Microsoft Foundry", { CLAUDE_CODE_USE_FOUNDRY: "1", ...keys }],
    ["ANTHROPIC_AUTH_TOKEN", keys],
    ["ANTHROPIC_AUTH_TOKEN", { CLAUDE_CODE_USE_BEDROCK: "0", CLAUDE_CODE_USE_VERTEX: "false", ...keys }],
    ["ANTHROPIC_API_KEY", { ...keys, ANTHROPIC_AUTH_TOKEN: "" }],
    ["CLAUDE_CODE_OAUTH_TOKEN", { CLAUDE_CODE_OAUTH_TOKEN: "o" }],
    ["the Claude login of the configuration folder", {}],
  ])("%s pays with the variables %j", (paidBy, variables) => {
    expect(identify({ HOME: "/home/ann", ...variables })).toEqual({ configFolder: "/home/ann/.claude", paidBy });
  });
});
