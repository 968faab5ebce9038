/**
 * Runs the protocol's conformance suite on the built server and on the fixtures behind our HTTP layer, in both revisions.
 * Prints the number of passed scenarios; test/conformance/not-ours.json lists the expected failures with reasons.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments } from "./arguments.mjs";

const USAGE = `Usage: npm run test:conformance [-- FILE ...]

Default: all of test/conformance.`;

const { positionals } = readArguments(USAGE, { allowPositionals: true });

const folder = mkdtempSync(join(tmpdir(), "ccm-conformance-"));
const file = join(folder, "figures.jsonl");
const { status } = spawnSync("npx", ["vitest", "run", "--project", "conformance", ...positionals], {
  stdio: "inherit",
  env: { ...process.env, CONFORMANCE_FILE: file },
});
const figures = existsSync(file)
  ? readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
  : [];
rmSync(folder, { recursive: true });
console.log("\n| on | revision | scenarios | passed | checks passed | checks failed | run twice |");
console.log("| --- | --- | --- | --- | --- | --- | --- |");
for (const { on, revision, scenarios, passed, checks, checksFailed, again } of figures) {
  console.log(`| ${on} | ${revision} | ${scenarios} | ${passed} | ${checks} | ${checksFailed} | ${again.join(", ")} |`);
}
process.exit(status ?? 1);
