import { describe, expect, it } from "vitest";
import { isSplitByClaude, malformedRule, malformedRules } from "../../src/domain/approvals/malformed-rule.ts";
import { correctToolName } from "../../src/tools/check-options.ts";
import { NO_ALLOW, RULE_TEXTS } from "../kit/attacks/malformed-rules.ts";

/** Checks `RULE_TEXTS` offline; `test/claude/malformed-rules.test.ts` asks the real Claude Code. */

describe("a rule of a caller", () => {
  it.each(RULE_TEXTS)("the rule %j (%s) is refused unless Claude Code can match it", (text, kind) => {
    const isTaken = kind === "keeps" || kind === "named";
    const problem = malformedRule(correctToolName(text), "deny") ?? "none";
    expect(problem).toMatch(isTaken ? /^none$/ : /^the rule .+\. Write .+\.$/s);
  });

  it("an allow rule with a * in its tool name is refused, unless behind the name of an MCP server", () => {
    for (const text of NO_ALLOW) {
      expect([text, malformedRule(text, "allow")]).toEqual([text, expect.stringContaining("would allow tools by a *")]);
      expect([text, malformedRule(text, "deny"), malformedRule(text, "tools")]).toEqual([text, undefined, undefined]);
    }
  });

  it("a malformed rule is reported with its field, also inside agents", () => {
    const agent = { description: "x", prompt: "x", tools: ["Read", "Bash("], disallowedTools: ["Bash(x"] };
    const found = malformedRules({ agents: { a: agent }, allowedTools: ["Read("], disallowedTools: ["Read", "Edit)"] });
    expect(found.map(({ path }) => path.join("."))).toEqual([
      "disallowedTools.1",
      "allowedTools.0",
      "agents.a.disallowedTools.0",
      "agents.a.tools.1",
    ]);
  });

  it("a long rule is quoted up to 100 characters", () => {
    const problem = malformedRule(`Bash(${"(\\".repeat(500)}`, "deny");
    expect(problem?.length).toBeLessThan(300);
  });

  it("a rule that the command line of Claude Code would split is recognized", () => {
    const split = ["Bash(a (b) c)", "Read(//x) y/**)", "Bash(echo a), b)"];
    expect([...split, "Bash(a b)", "Bash(a, b)", "Read(//x (y)/**)", "Bash(a)b)"].filter(isSplitByClaude)).toEqual(
      split,
    );
  });
});
