/**
 * Measures which part of src the tests execute: in their own processes, and in every Node process that they start (the built
 * server, the reaper, commands). Prints lines, functions and branches. coverage/lcov.info has them by line; coverage/reached.json
 * names the test files that reach a statement, for the mutation check.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "./arguments.mjs";
import { Counts } from "./test-coverage/counts.mjs";
import { digestOfSources, filesIn } from "./test-coverage/files.mjs";
import { lcovOf, reachedOf, summaryOf } from "./test-coverage/report.mjs";

const USAGE = `Usage: npm run test:coverage [-- [--keep] PROJECT|FILE ...]

By default the projects of npm test.

--keep  counts with it what earlier runs have recorded of the same sources`;

const { positionals, values } = readArguments(USAGE, {
  options: { keep: { type: "boolean" } },
  allowPositionals: true,
});
const root = join(import.meta.dirname, "..");
const folder = join(root, "coverage");
const raw = join(folder, "raw");
const digestFile = join(raw, "sources.sha256");

const digest = digestOfSources(root);
if (!values.keep || !existsSync(digestFile) || readFileSync(digestFile, "utf8") !== digest) {
  rmSync(raw, { recursive: true, force: true });
}
mkdirSync(raw, { recursive: true });
writeFileSync(digestFile, digest);

const projects = positionals.length > 0 ? positionals.filter((name) => !isFile(name)) : projectsOfNpmTest();
const files = positionals.filter((name) => isFile(name));

if (run("node", ["scripts/build.mjs", "--source-maps"]) !== 0) process.exit(1);
const status = run("npx", ["vitest", "run", ...projects.flatMap((name) => ["--project", name]), ...files], {
  COVERAGE_FOLDER: raw,
});

const counts = new Counts(root);
for (const file of filesIn(root, "src")) counts.source(file);
const recorded = readdirSync(raw).filter((name) => name.startsWith("test%2F"));
for (const name of recorded) {
  for (const file of readdirSync(join(raw, name))) {
    const record = readRecord(join(raw, name, file));
    if (record) counts.add(record, decodeURIComponent(name));
  }
}
writeFileSync(join(folder, "lcov.info"), lcovOf(counts.sources));
writeFileSync(
  join(folder, "reached.json"),
  JSON.stringify({ digest, ...reachedOf(counts.sources, recorded.map(decodeURIComponent)) }),
);
const summary = summaryOf(counts.sources);
writeFileSync(join(folder, "summary.json"), JSON.stringify(summary));
for (const [name, { covered, total }] of Object.entries(summary)) {
  console.log(`${name.padEnd(9)} ${((100 * covered) / total).toFixed(2)} % (${covered} of ${total})`);
}
process.exit(status);

function run(program, args, env) {
  return spawnSync(program, args, { cwd: root, stdio: "inherit", env: { ...process.env, ...env } }).status ?? 1;
}

function isFile(name) {
  return /[./]/.test(name);
}

function projectsOfNpmTest() {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return [...scripts.test.matchAll(/--project (\S+)/g)].map(([, name]) => name);
}

/** Ignore an incomplete file of a process that was killed while writing. */
function readRecord(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}
