import { describe, expect, it } from "vitest";
import { rulesOf, unknownTools } from "../../src/config/approvals/settings.ts";
import { loadConfig, unknownVariables } from "../../src/config/load.ts";
import { nearest } from "../../src/domain/suggest.ts";

describe("suggestions for misspelt names", () => {
  it.each<[string, string | undefined]>([
    ["serv", "serve"],
    ["srve", "serve"],
    ["serve", "serve"],
    ["hlep", "help"],
    ["start", undefined],
    ["", undefined],
    ["de", "demo"],
    ["v", undefined],
    ["serve".repeat(200_000), undefined],
  ])("the near match of %j is %j", (word, expected) => {
    expect(nearest(word, ["serve", "demo", "help", "version"])).toBe(expected);
  });

  it("a rule with an unknown tool is reported with a near match, because the rule may never match", () => {
    const config = loadConfig({ argv: ["--deny-rules", "WebFetsch,Bash(rm:*),mcp__x"], env: {} });
    expect(unknownTools(config)).toEqual([
      "The rule WebFetsch: this server knows no tool WebFetsch. Did you mean WebFetch?",
    ]);
  });

  it("a misspelt variable is reported with a near match, because it would silently have no effect", () => {
    const env = {
      CLAUDE_CODE_MCP_ALLOW_DIR: "/a",
      CLAUDE_CODE_MCP_DEPTH: "1",
      CLAUDE_CODE_MCP_CONSTANTS: "{}",
      PATH: "",
    };
    expect(unknownVariables(env)).toEqual([
      "CLAUDE_CODE_MCP_ALLOW_DIR is not a setting of this version and has no effect. Did you mean CLAUDE_CODE_MCP_ALLOW_DIRS?",
    ]);
  });
});

it("messages of other sessions are denied, unless an allow or ask rule names them", () => {
  const denied = (...argv: string[]) => rulesOf(loadConfig({ argv, env: {} })).deny.map(({ text }) => text);
  expect(denied()).toEqual(["PeerMessage"]);
  expect(denied("--ask-rules", "Bash", "--deny-rules", "WebFetch")).toEqual(["WebFetch", "PeerMessage"]);
  expect(denied("--ask-rules", "PeerMessage")).toEqual([]);
  expect(denied("--allow-rules", "PeerMessage", "--deny-rules", "PeerMessage")).toEqual(["PeerMessage"]);
});
