import { Client } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { listToolNames } from "../../src/tools/tool-names.ts";
import { Wire } from "../kit/clients/mcp-wire.ts";
import { tools } from "../kit/tools/run.ts";

const MAX_LINE_BYTES = 8_192;

describe("a client that follows tasks", () => {
  const declared = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };

  async function promptOf(capabilities: object, name: string, args: Record<string, string>) {
    const client = new Client(
      { name: "claude-code", version: "1.0.0" },
      { versionNegotiation: { mode: "auto" }, capabilities },
    );
    await client.connect(new Wire({ tasks: { keptMs: 1 } }));
    const { messages } = await client.getPrompt({ name, arguments: args });
    await client.close();
    return JSON.stringify(messages);
  }

  async function texts(capabilities: object, options: ConstructorParameters<typeof Wire>[0] = {}) {
    const wire = new Wire({ tasks: { keptMs: 1 }, ...options });
    const negotiated = { versionNegotiation: { mode: "auto" as const }, capabilities };
    const client = new Client({ name: "claude-code", version: "1.0.0" }, negotiated);
    await client.connect(wire);
    const { tools: listed } = await client.listTools();
    const instructions = client.getInstructions() ?? "";
    await client.close();
    const bytes = Buffer.byteLength(wire.lines.find((each) => each.includes('"tools":[{')) ?? "");
    return {
      bytes,
      instructions,
      descriptions: listed.map(({ description, name }) => `${name}: ${String(description)}`),
    };
  }

  it("instructions and descriptions say that results and requests come by themselves, within 8,192 bytes", async () => {
    const { bytes, descriptions, instructions } = await texts(declared);
    expect(instructions).toMatch(/result comes by itself, as a notification, .* shown to the user in a form/);
    expect(instructions).not.toMatch(/poll/i);
    const start = descriptions.find((text) => text.startsWith("claude_code: "));
    expect(start).toMatch(/result comes by itself, as a notification, and requests are shown to the user in a form/);
    expect(start).not.toMatch(/poll/i);
    expect(bytes).toBeLessThanOrEqual(MAX_LINE_BYTES);
    const resumable = await texts(declared, { limits: { allowsDiskResume: true } });
    expect(resumable.bytes).toBeLessThanOrEqual(MAX_LINE_BYTES);
  });

  it("`claude_code_query`, `claude_chat_query` and `claude_direct_query` say that their answers come by themselves", async () => {
    const toolNames = listToolNames(["query", "chat"], { enabled: true });
    const listed = [...tools.values()].filter(({ name }) => toolNames.some((each) => each === name));
    const { descriptions, instructions } = await texts(declared, { tools: listed, toolNames });
    const queries = descriptions.filter((text) => /^claude_\w+_query: /.test(text));
    expect(queries.filter((text) => /come(?:s)? by (?:itself|themselves), as a notification/.test(text))).toHaveLength(
      3,
    );
    expect(instructions.match(/come by themselves, as (?:a )?notification/g)).toHaveLength(2);
  });

  it("a client that declares tasks without forms is told where requests wait, because no form can show them", async () => {
    const { instructions } = await texts({ extensions: declared.extensions });
    expect(instructions).toContain("2. Poll with claude_code_check");
  });

  it("prompts ask for no wait where the result comes by itself, or where calls wait by default", async () => {
    const followed = await promptOf(declared, "review", { cwd: "/p" });
    expect(followed).toContain("2. The result comes by itself.");
    expect(followed).not.toMatch(/poll|waitMs\W+30000/);
    const waited = await promptOf({}, "review", { cwd: "/p" });
    expect(waited).toContain("2. While there is no result: claude_code_check");
    for (const text of [waited, await promptOf({}, "delegate", { task: "x" })]) {
      expect(text).not.toMatch(/waitMs\W+30000/);
    }
  });
});
