import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { stateFile } from "../../src/claude/child-environment.ts";
import { splitForSpare } from "../../src/claude/spares/spec.ts";

const folder = mkdtempSync(join(tmpdir(), "ccm-spare-key-"));
afterAll(() => rmSync(folder, { recursive: true }));

const env = { CLAUDE_CONFIG_DIR: folder };

async function keyWith(state: unknown): Promise<string | undefined> {
  writeFileSync(stateFile(env), JSON.stringify(state));
  const found = await splitForSpare({ principal: "local", wrapper: [], record: {} }, { cwd: folder, env });
  return found?.spec.key;
}

it("the key of a spare changes with the user's MCP servers, but with no other state of Claude Code", async () => {
  const key = await keyWith({ numStartups: 1 });
  expect(key).toMatch(/^[\da-f]{64}$/);
  expect(await keyWith({ numStartups: 2 })).toBe(key);
  const withServer = await keyWith({ mcpServers: { one: { command: "one" } } });
  expect(withServer).not.toBe(key);
  expect(await keyWith({ mcpServers: { two: { command: "two" } } })).not.toBe(withServer);
});
