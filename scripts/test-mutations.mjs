/**
 * Mutation check: draws faults by a seed, puts each in a copy of the tree and runs the tests that could detect it, first unit
 * tests that import the file, then all others that reach the line (by the map of `npm run test:coverage`). Always includes the
 * faults of by-hand.mjs. Results are kept, so that a stopped run resumes.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as prettier from "prettier";
import { readArguments } from "./arguments.mjs";
import { faultsByHand } from "./test-mutations/by-hand.mjs";
import { drawFaults } from "./test-mutations/draw.mjs";
import { Judge } from "./test-mutations/judge.mjs";
import { Reach } from "./test-mutations/reach.mjs";
import { summaryOf, tableOf } from "./test-mutations/table.mjs";
import { Tree } from "./test-mutations/tree.mjs";

const USAGE = `Usage: npm run test:mutations [-- --seed N --count N --only PATH --again --unit-only --list --write]

--seed N     which faults are drawn (18)
--count N    how many (60), besides those by hand
--only PATH  only in files whose path has this in it
--again      tries those again that nothing has found
--unit-only  unit tests alone: what they do not find is left open
--list       says what would be tried, and tries nothing; with --write it writes what is known
--write      writes the table to test/mutations.md`;

const { numberOf, values } = readArguments(USAGE, {
  options: {
    again: { type: "boolean" },
    count: { type: "string", default: "60" },
    list: { type: "boolean" },
    only: { type: "string", default: "" },
    seed: { type: "string", default: "18" },
    "unit-only": { type: "boolean" },
    write: { type: "boolean" },
  },
});
const [count, seed] = [numberOf("count"), numberOf("seed")];
const root = join(import.meta.dirname, "..");
const output = join(root, "test-output");
const { only } = values;

const read = (file) => readFileSync(join(root, file), "utf8");
const byHand = faultsByHand(read).filter(({ file }) => file.includes(only));
const faults = [...byHand, ...drawFaults(root, { count, only, seed })];
if (faults.length === 0) {
  console.error(
    `test:mutations: no file in which faults are drawn has "${only}" in its path. See the folders in docs/testing.md.`,
  );
  process.exit(1);
}

mkdirSync(output, { recursive: true });
const kept = join(output, "mutations.json");
const results = new Map(existsSync(kept) ? Object.entries(JSON.parse(readFileSync(kept, "utf8"))) : []);
if (values.list) {
  for (const fault of faults) console.log(spell(fault));
  if (values.write) await writeTable();
  process.exit(0);
}
if (values.again) for (const [id, { verdict }] of results) if (verdict !== "found") results.delete(id);

let reach = new Reach(root);
if (reach.recorded.length === 0 && !values["unit-only"]) {
  console.log("No map of what the tests reach: npm run test:coverage is run for it.");
  spawnSync("node", ["scripts/test-coverage.mjs"], { cwd: root, stdio: "inherit" });
  reach = new Reach(root);
}
const folder = mkdtempSync(join(tmpdir(), "ccm-mutations-"));
const judge = new Judge(new Tree(root, join(folder, "faulty")), new Tree(root, join(folder, "clean")));
try {
  await tryAll("unit", (fault) => reach.unit(fault));
  if (!values["unit-only"]) await tryAll("others", (fault) => reach.others(fault));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (values.write) await writeTable();
const summary = summaryOf(judgedFaults());
console.log(`\n${summary.text}`);
process.exit(summary.isGood || values["unit-only"] ? 0 : 1);

function judgedFaults() {
  return faults.map((fault) => ({ ...fault, ...results.get(idOf(fault)) }));
}

async function writeTable() {
  const file = join(root, "test/mutations.md");
  const options = await prettier.resolveConfig(file);
  writeFileSync(
    file,
    await prettier.format(tableOf(judgedFaults(), { count, read, seed }), { ...options, filepath: file }),
  );
}

/** Every fault that tests of this kind have not detected yet. */
async function tryAll(kind, testsFor) {
  const open = faults.filter((fault) => !isSettled(fault, kind));
  for (const [at, fault] of open.entries()) {
    const tests = testsFor(fault);
    process.stdout.write(`${kind} ${at + 1}/${open.length} ${spell(fault)} (${tests.length} files) `);
    const begin = performance.now();
    const by = tests.length > 0 ? await judge.findBy(fault, kind, tests) : undefined;
    const before = results.get(idOf(fault))?.seconds ?? 0;
    const seconds = before + Math.round((performance.now() - begin) / 1000);
    const missed = kind === "unit" ? "open" : "survived";
    const verdict = by ? "found" : missed;
    results.set(idOf(fault), { verdict, tried: kind, seconds, ...(by && { by }) });
    writeFileSync(kept, JSON.stringify(Object.fromEntries(results), null, 1));
    console.log(`${verdict}${by ? ` by ${by.file}: ${by.name}` : ""}, ${seconds} s`);
  }
}

function isSettled(fault, kind) {
  const { tried, verdict } = results.get(idOf(fault)) ?? {};
  return verdict === "found" || verdict === "survived" || tried === kind;
}

/** The key stays the same until the file changes. */
function idOf({ becomes, end, file, start }) {
  return createHash("sha256")
    .update(`${file} ${start} ${end} ${becomes} ${read(file)}`)
    .digest("hex")
    .slice(0, 16);
}

function spell({ becomes, file, line, operator, was }) {
  const short = (text) => JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);
  return `${operator}: ${file}:${line} ${short(was)} -> ${short(becomes)}`;
}
