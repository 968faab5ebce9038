import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

/** What a Claude Code cannot take along to the next server must not be used. */

const CLAUDE = join(import.meta.dirname, "../../src/claude");
const files = readdirSync(CLAUDE, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));

it("no MCP server runs inside this process: it would end with it, and with it the tools of a turn that goes on", () => {
  const found = files.filter((file) => /createSdkMcpServer|type: "sdk"/.test(readFileSync(join(CLAUDE, file), "utf8")));
  expect(files.length).toBeGreaterThan(40);
  expect(found).toEqual([]);
});

it("hooks are called by their place in the options, so the next server must give the same: only two files make any", () => {
  const found = files.filter((file) => /hooks: (?:\[|hooksOf|\{)/.test(readFileSync(join(CLAUDE, file), "utf8")));
  expect(found.toSorted()).toEqual(["process/hooks.ts", "process/launch.ts", "spares/spare.ts"]);
});
