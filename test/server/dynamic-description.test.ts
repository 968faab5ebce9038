import { describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld({ agent: "stand-in" });

async function description({ client }: Server): Promise<string> {
  const { tools } = await client.listTools();
  return tools.find(({ name }) => name === "claude_code")?.description ?? "";
}

describe.each(["legacy", "modern"] as const)("--dynamic-description, with the %s client", (client) => {
  it("names Claude Code's tools once a session was looked at", async () => {
    const server = await world.server({ client, args: ["--dynamic-description"] });
    const before = await description(server);
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag([{ text: "hi" }]),
      cwd: world.folder(),
    });
    await server.end(sessionId);
    const after = await description(server);
    expect(after.startsWith(`${before} Tools of Claude Code: `)).toBe(true);
    expect(after).toMatch(/\bBash\b.*\bRead\b.*\bWrite\b/);
    expect(after).not.toContain("mcp__");
  });
});
