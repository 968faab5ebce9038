import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { AdvancedOptions } from "../../src/domain/options.ts";
import { PromptOptions } from "../../src/tools/prompt.ts";
import type { Tool } from "../../src/tools/define.ts";
import { instructionsFor, type ToolName } from "../../src/tools/tool-names.ts";
import { toolsOf } from "../../src/tools/toolsets.ts";
import { TOOLSET_SETTINGS } from "../kit/tools/fake-engine.ts";

/**
 * Folder of the listings, one committed file per tool so that reviews see each change. `UPDATE_TOOLSNAPS=1` writes the files,
 * `npm run format` lays them out.
 */
const SNAPS = join(import.meta.dirname, "..", "toolsnaps");

interface Shown {
  required?: string[];
  properties: Record<string, { description?: string }>;
}

const tools = toolsOf(["all"], TOOLSET_SETTINGS);

const LIMITS = { maxWaitMs: 45_000 };

function listed(tool: Tool): string {
  const { name, title, annotations, meta } = tool;
  const description = tool.describe(LIMITS);
  const inputSchema = tool.inputSchema(LIMITS);
  const shown = { name, title, description, inputSchema, outputSchema: tool.outputSchema(), annotations, _meta: meta };
  return JSON.stringify(shown);
}

/** Text of `file` without its layout. */
function committed(file: string): string {
  return existsSync(file) ? JSON.stringify(JSON.parse(readFileSync(file, "utf8"))) : "no snapshot";
}

describe("tool schemas", () => {
  it.each(tools)("$name matches its snapshot", (tool) => {
    const file = join(SNAPS, `${tool.name}.json`);
    if (process.env["UPDATE_TOOLSNAPS"] === "1") writeFileSync(file, listed(tool));
    expect(committed(file)).toBe(listed(tool));
  });

  it("no snapshot is obsolete", () => {
    expect(readdirSync(SNAPS).toSorted()).toEqual(tools.map(({ name }) => `${name}.json`).toSorted());
  });

  it.each(tools)("$name: no field of an answer is required, because errors are answers too", (tool) => {
    expect(tool.outputSchema()).toEqual({ type: "object" });
  });

  it.each(tools)("$name: every optional argument has its default in its description", (tool) => {
    const schema = tool.inputSchema(LIMITS) as unknown as Shown;
    const silent = Object.entries(schema.properties).filter(
      ([name, { description }]) => !schema.required?.includes(name) && !description?.includes("Default: "),
    );
    expect(silent.map(([name]) => name)).toEqual([]);
  });

  it("`claude_code` names every key of `advanced` once, with its type, for clients without resources", () => {
    const claudeCode = tools.find(({ name }) => name === "claude_code")!;
    const { properties } = claudeCode.inputSchema(LIMITS) as unknown as Shown;
    const { description = "" } = properties["advanced"]!;
    const keys = Object.keys({ ...AdvancedOptions.shape, ...PromptOptions.shape });
    const named = description
      .slice(0, description.indexOf(". "))
      .split("; ")
      .flatMap((group) => {
        const [names = "", type = ""] = group.split(": ");
        return names.split(", ").map((name) => [name, type] as const);
      });
    expect(named.map(([name]) => name).toSorted()).toEqual(keys.toSorted());
    expect(Object.fromEntries(named)).toMatchObject({
      agents: "object",
      callerApproves: "none|reads|edits|all",
      debug: "boolean",
      maxBudgetUsd: "number",
      outputFormat: "{type, schema}",
      settingSources: "string[]",
      skills: "all|string[]",
      thinking: "{type, display, budgetTokens}",
      timeout: "number",
      title: "string",
      tools: "string[]|{type, preset}",
    });
    expect(
      named.filter(([, type]) => !/^(?:[a-z]+(?:\[\])?|\{[\w, ]+\})(?:\|(?:[a-z]+(?:\[\])?|\{[\w, ]+\}))*$/.test(type)),
    ).toEqual([]);
  });

  it("the descriptions say how the tools work together: many clients hide instructions from their model", () => {
    const descriptions = tools.map((tool) => `${tool.name}: ${tool.describe(LIMITS)}`).join("\n");
    const facts = [
      /^claude_code: .*background agent that outlives the call/m,
      /^claude_code: .*at once, or with the result .* within waitMs/m,
      /^claude_code: .*answer its requests with claude_code_check.*claude_code_reply/m,
      /^claude_code_check: Poll.*waits for.*events from cursor.*requests in actions\[\].*result once/m,
      /^claude_code_check: .*respond_permission.*answer_question.*answers one, then waits too/m,
      /^claude_code_reply: Send the next prompt/m,
      /^claude_code_session: List .*cancel/m,
      /^claude_code_query: .*wait for its end.*messages/m,
      /^claude_session_create: .*conversation.*claude_chat_query.*claude_session_close/m,
      /^claude_direct_query: Send one prompt in a session of its own.*close the session/m,
    ];
    expect(facts.filter((fact) => !fact.test(descriptions))).toEqual([]);
    // Every tool or parameter named in the instructions must occur in a schema.
    const instructions = instructionsFor(tools.map(({ name }) => name as ToolName));
    const schemas = tools.map((tool) => listed(tool)).join("\n");
    const named = instructions.match(/\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+[A-Z]\w+/g) ?? [];
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !schemas.includes(name))).toEqual([]);
  });

  it("docs/tools.md has bounds that are omitted from the schemas", () => {
    const check = tools.find(({ name }) => name === "claude_code_check");
    const shown = check?.inputSchema(LIMITS) as { properties: object };
    const bounded = check?.inputSchema(LIMITS, true) as { properties: object };
    expect(shown.properties).toHaveProperty("maxEvents", expect.not.objectContaining({ maximum: 1_000 }));
    expect(bounded.properties).toHaveProperty("maxEvents", expect.objectContaining({ minimum: 1, maximum: 1_000 }));
    const docs = readFileSync(join(import.meta.dirname, "..", "..", "docs", "tools.md"), "utf8");
    for (const range of ["1000 to 86400000", "1 to 1000", "2048 to 1048576"])
      expect(docs).toContain(`integer, ${range}`);
  });

  it("a schema says how long a call may wait on this server", () => {
    const schema = tools[0]?.inputSchema({ maxWaitMs: 1_234 });
    expect(schema).toMatchObject({ properties: { waitMs: { maximum: 1_234 } } });
  });
});
