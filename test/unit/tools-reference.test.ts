import { describe, expect, it } from "vitest";
import { AdvancedOptions, SessionOptions } from "../../src/domain/options.ts";
import { optionsReference } from "../../src/mcp/resources/options-reference.ts";

const text = optionsReference();

describe("the reference of the options", () => {
  it.each(SessionOptions.keyof().options)("has a row with a default, or marked as required: %s", (name) => {
    const rows = text.split("\n").filter((line) => line.startsWith(`| \`${name}\` |`));
    // A field of an agent or a server may have the same name.
    expect(rows.length).toBeGreaterThanOrEqual(1);
    const [, , type, fallback] = rows[0]?.split(" | ").map((cell) => cell.trim()) ?? [];
    expect(type).toBeDefined();
    expect(fallback).not.toBe("");
  });

  it("marks the advanced ones", () => {
    const [flat = "", advanced = ""] = text.split("## In `advanced`");
    expect(flat).toContain("| `cwd` |");
    for (const name of Object.keys(AdvancedOptions.shape)) {
      expect(flat).not.toContain(`| \`${name}\` |`);
      expect(advanced).toContain(`| \`${name}\` |`);
    }
  });

  it("describes the fields of objects, at any depth", () => {
    expect(text).toContain("## `agents.NAME`\n");
    expect(text).toContain("## `agents.NAME.mcpServers[].NAME`, form 2");
    expect(text).toContain("## `sandbox.network`\n");
    expect(text).toContain("## `sandbox.credentials.files[]`\n");
    expect(text).toContain("| `budgetTokens` | integer, 1024 to 1000000 | Required. |");
    expect(text).toContain("| `maxBudgetUsd` | number, above 0 and at most 1000000 | no limit |");
  });

  it("is Markdown with complete tables", () => {
    const tables = text.split("\n\n").filter((part) => part.startsWith("|"));
    const widths = tables.map((rows) => new Set(rows.split("\n").map((line) => line.split(/(?<!\\)\|/).length)));
    expect(widths.length).toBeGreaterThan(10);
    for (const [index, each] of widths.entries()) expect([...each]).toEqual([index < 2 ? 6 : 5]);
    expect(text.length).toBeLessThan(20_000);
  });
});
