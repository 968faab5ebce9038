import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";

// Joined, so that the check does not find the word here.
const WORD = ["some", "body"].join("");

const FILES = {
  "comment.ts": `// For ${WORD}.\nexport const x = 1;\n`,
  "text.ts": `export const x = 1;\nexport const y = "asks ${WORD}";\n`,
  "after-a-fence.ts": `// \`\`\`ts\n// For ${WORD}.\n`,
  "after-a-tag.ts": `// <div>\n// For ${WORD}.\n`,
  "text.md": `# Title\n\nIt asks ${WORD}.\n`,
  "code.md": `# Title\n\nIt calls \`${WORD}\`.\n`,
};

it("check:prose finds a word in comments, texts and documents, but not in code", () => {
  const folder = mkdtempSync(join(tmpdir(), "ccm-prose-"));
  const files = Object.entries(FILES).map(([name, text]) => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  });
  const { status, stdout } = spawnSync(process.execPath, ["scripts/check-prose.mjs", ...files], { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  const places = stdout.split("\n").flatMap((line) => /([^/]+:\d+) /.exec(line)?.[1] ?? []);
  expect(places).toEqual(["comment.ts:1", "text.ts:2", "after-a-fence.ts:2", "after-a-tag.ts:2", "text.md:3"]);
  expect(status).toBe(1);
});
