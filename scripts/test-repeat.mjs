/**
 * Finds flaky tests: runs each file many times, alone, optionally beside a busy loop on each core. Keeps the output of each
 * failure in test-output/repeat. Exits 1 after any failure.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";

const { positionals, values } = parseArgs({
  options: {
    busy: { type: "boolean" },
    help: { type: "boolean", short: "h" },
    times: { type: "string", default: "50" },
  },
  allowPositionals: true,
});
const times = Number(values.times);
if (values.help || !(Number.isInteger(times) && times > 0)) {
  console.log(`Usage: npm run test:repeat [-- --times N --busy FILE ...]

By default each file of test/unit, test/server and test/claude that waits for something.

--times N  how often each file runs (50)
--busy     beside a busy loop on each core`);
  process.exit(values.help ? 0 : 1);
}
/** Calls by which a test waits: for a time, an event, a process or a condition. */
const WAITS = /\b(?:createWorld|once|poll|quiet|setTimeout|sleep|useWorld|waitFor\w*)\(/;

const root = join(import.meta.dirname, "..");
const output = join(root, "test-output/repeat");
rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });

const files = positionals.length > 0 ? positionals : ["test/unit", "test/server", "test/claude"].flatMap(waitingIn);
const loops = values.busy ? startLoops() : [];
process.once("exit", () => loops.forEach((loop) => loop.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));

let failures = 0;
for (const [at, file] of files.entries()) {
  process.stdout.write(`${at + 1}/${files.length} ${file} `);
  for (let run = 1; run <= times; run += 1) process.stdout.write(passes(file, run) ? "." : "F");
  process.stdout.write("\n");
}
const runs = `${files.length} files, ${times} times each${values.busy ? ", on a busy machine" : ""}`;
console.log(failures === 0 ? `${runs}: no failure` : `${runs}: ${failures} failures, their output is in ${output}`);
process.exit(failures === 0 ? 0 : 1);

function waitingIn(folder) {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `${folder}/${name}`)
    .filter((file) => WAITS.test(readFileSync(join(root, file), "utf8")));
}

function startLoops() {
  return Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }),
  );
}

function passes(file, run) {
  const command = ["vitest", "run", "--project", file.split("/")[1], file];
  const { status, stderr, stdout } = spawnSync("npx", command, { cwd: root, encoding: "utf8", maxBuffer: 1e9 });
  if (status === 0) return true;
  failures += 1;
  writeFileSync(join(output, `${basename(file, ".test.ts")}-${run}.log`), stdout + stderr);
  return false;
}
