/**
 * Causes the faults of test/faults through the built server: a short share by default, the full count with `--full` (about half
 * an hour). Prints the results; the full figures belong in docs/reliability.md.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, existsSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments } from "./arguments.mjs";

const USAGE = `Usage: npm run test:faults [-- --full] [FILE ...]

--full  all runs (200 kills of the server, 100 of Claude Code) instead of a short share`;

const { positionals, values } = readArguments(USAGE, {
  options: { full: { type: "boolean" } },
  allowPositionals: true,
});
const folder = mkdtempSync(join(tmpdir(), "ccm-faults-"));
const file = join(folder, "figures.jsonl");
const { status } = spawnSync("npx", ["vitest", "run", "--project", "faults", ...positionals], {
  stdio: "inherit",
  env: { ...process.env, FAULTS_FILE: file, ...(values.full && { FAULTS: "full" }) },
});
const figures = existsSync(file)
  ? readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
  : [];
rmSync(folder, { recursive: true, force: true });
console.log("\n| fault | runs | lost | left over | |\n| --- | --- | --- | --- | --- |");
for (const { fault, leftOver, lost, note = "", runs } of figures) {
  console.log(`| ${fault} | ${runs} | ${lost} | ${leftOver} | ${note} |`);
}
process.exit(status ?? 1);
