import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Connection } from "../support/connection.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld({ agent: "stand-in" });

async function description({ client }: Connection): Promise<string> {
  const { tools } = await client.listTools();
  return tools.find(({ name }) => name === "claude_code")?.description ?? "";
}

it("--dynamic-description names Claude Code's tools to clients of both eras once a session was polled", async () => {
  const http = await world.http({ args: ["--dynamic-description"] });
  const clients = [await http.connect("legacy"), await http.connect("modern")] as const;
  const before = await Promise.all(clients.map(description));
  const [server] = clients;
  const { sessionId } = await server.call("claude_code", { prompt: scriptTag([{ text: "hi" }]), cwd: world.folder() });
  await server.end(sessionId);
  for (const [index, after] of (await Promise.all(clients.map(description))).entries()) {
    expect(after.startsWith(`${before[index]!} Tools of Claude Code: `)).toBe(true);
    expect(after).toMatch(/\bBash\b.*\bRead\b.*\bWrite\b/);
    expect(after).not.toContain("mcp__");
  }
});
