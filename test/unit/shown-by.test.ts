import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";

/** Returns the parameters shown by a test file with `text`, as `tool.name`. */
function shownBy(text: string): string[] {
  const root = mkdtempSync(join(tmpdir(), "shown-by-"));
  try {
    mkdirSync(join(root, "test/claude"), { recursive: true });
    writeFileSync(join(root, "test/claude/a.test.ts"), text);
    const code = `
      import { shownByTests } from "./scripts/shown-by.mjs";
      const shown = shownByTests(${JSON.stringify(root)}, ["claude_code", "claude_code_check"]);
      const names = [...shown].flatMap(([tool, files]) => [...files.keys()].map((name) => tool + "." + name));
      console.log(JSON.stringify(names));`;
    const run = spawnSync(process.execPath, ["--input-type=module", "--eval", code], { encoding: "utf8" });
    const names: string[] = JSON.parse(run.stdout);
    return names.filter((name) => !/\.claude_code/.test(name)).toSorted();
  } finally {
    rmSync(root, { recursive: true });
  }
}

it("a parameter is shown by the test whose title names it, with its tool in the title or around it", () => {
  const text = `
describe("an option of \`claude_code\`", () => {
  it("does: \`model\`, \`env\`", async () => {
    await play("\`prompt\` in a text shows nothing");
  });
  describe("deeper", () => {
    it.each([
      ["a", 1],
    ])("and \`agents\` %s", () => {
    });
  });
});

describe("others", () => {
  it("name no tool: \`cwd\`", () => {
  });
  it("of \`claude_code_check\`: \`until\`", () => {
  });
  it.skip("is not run: \`claude_code\` \`title\`", () => {
  });
});
`;
  expect(shownBy(text)).toEqual([
    "claude_code.agents",
    "claude_code.env",
    "claude_code.model",
    "claude_code_check.until",
  ]);
});
