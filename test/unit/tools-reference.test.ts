import { describe, expect, it } from "vitest";
import { AdvancedOptions, SessionOptions } from "../../src/domain/options.ts";
import { optionsReference } from "../../src/mcp/resources/options-reference.ts";

const text = optionsReference();
const linesOf = (name: string) => text.split("\n").filter((line) => line.startsWith(`- \`${name}\` (`));

describe("the reference of the options", () => {
  it.each(SessionOptions.keyof().options)("an option has a line with a type and a default: %s", (name) => {
    const [line] = linesOf(name);
    // A field of an agent or a server may have the same name, below.
    expect(line).toMatch(/^- `\w+` \(.+\): (?!Required).*Default: .+\.$/);
  });

  it("the reference lists advanced options in their own section", () => {
    const [flat = "", advanced = ""] = text.split("## In `advanced`");
    expect(flat).toContain("- `cwd` (");
    for (const name of Object.keys(AdvancedOptions.shape)) {
      expect(flat).not.toContain(`- \`${name}\` (`);
      expect(advanced).toContain(`- \`${name}\` (`);
    }
  });

  it("the fields of an object are described at any depth, once for all places that take the object", () => {
    expect(text).toContain("## `agents.NAME`\n");
    expect(text).toContain("## `agents.NAME.mcpServers[].NAME` and `mcpServers.NAME`, form 2\n");
    expect(text).toContain("## `sandbox.network`\n");
    expect(text).toContain("## `sandbox.credentials.files[]`\n");
    expect(text).toContain("- `budgetTokens` (integer, 1024 to 1000000): Required.\n");
    expect(linesOf("maxBudgetUsd")[0]).toContain("(number, above 0 and at most 1000000)");
    const sections = text.split("\n## ").slice(1);
    expect(new Set(sections.map((each) => each.replace(/^[^\n]*?(?=, form|\n)/, ""))).size).toBe(sections.length);
  });
});
