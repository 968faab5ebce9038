import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, it } from "vitest";

/** Lines of a file, each with the number of findings that the rule must have in the line. */
const LINES = [
  ["/** Whether the turn is over. */", 1],
  ["/** True if the turn is over. */", 0],
  ["// The same as above.", 1],
  ["const a = 1; // What it costs.", 1],
  ["// Joins lines of one comment,", 0],
  ["// which is read as one.", 0],
  ["/* `Of` is a name here. */", 0],
  ["/** `turn` of the request. */", 0],
  ["// oxlint-disable-next-line no-var", 0],
  ['const b = "// Of a text"; // Number of texts.', 0],
] as const;

it("the rule comments/first-word of oxlint refuses comments that begin without a subject, and no others", () => {
  const folder = mkdtempSync(join(tmpdir(), "ccm-comments-"));
  const plugin = join(import.meta.dirname, "../../scripts/lint-comments.mjs");
  const config = { jsPlugins: [plugin], categories: { correctness: "off" }, rules: { "comments/first-word": "error" } };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  writeFileSync(join(folder, "code.ts"), LINES.map(([line]) => line).join("\n"));
  const args = ["oxlint", "-c", join(folder, "config.json"), "-f", "unix", join(folder, "code.ts")];
  const { status, stdout } = spawnSync("npx", args, { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  const found = [...stdout.matchAll(/code\.ts:(\d+):.*comments\(first-word\)/g)].map(([, line]) => Number(line));
  expect(found).toEqual(LINES.flatMap(([, count], index) => (count === 1 ? [index + 1] : [])));
  expect(status).toBe(1);
});
