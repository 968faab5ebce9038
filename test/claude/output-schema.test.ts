import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";

import { bundledClaudes } from "../../src/claude/claude-files.ts";
import { withoutDialect } from "../../src/claude/preflight/output-schema.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { ACCEPTED, REFUSED } from "../kit/sessions/output-schemas.ts";
import { useWorld } from "../kit/world.ts";

/** The real Claude Code must refuse exactly the schemas refused by this server: `REFUSED`. */

const world = useWorld();

/** Starts Claude Code with `schema` and an empty stdin: exits at once. */
async function startedWith(schema: JsonObject): Promise<{ code: unknown; stderr: string }> {
  const [claude = "claude"] = bundledClaudes();
  const args = ["--print", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"];
  const env = { PATH: process.env["PATH"] ?? "", HOME: world.folder(), ...world.model.environment(world.configFolder) };
  const child = spawn(claude, [...args, "--json-schema", JSON.stringify(schema)], { cwd: world.folder(), env });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdout.resume();
  child.stdin.end();
  const [code]: unknown[] = await once(child, "close");
  return { code, stderr };
}

it.each(Object.entries(REFUSED))("Claude Code refuses a schema: %s", async (_, { schema }) => {
  const { code, stderr } = await startedWith(schema);
  expect(stderr).toContain("is not a valid JSON Schema");
  expect(code).toBe(1);
});

it.each(Object.entries(ACCEPTED))("Claude Code accepts a schema: %s", async (_, schema) => {
  const { stderr } = await startedWith(withoutDialect(schema));
  expect(stderr).not.toContain("is not a valid JSON Schema");
});
