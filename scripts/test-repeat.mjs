/**
 * Finds flaky tests: runs each file many times, optionally beside a busy loop on each core. Keeps the output of failing files
 * in test-output/repeat. Exits 1 after any failure.
 */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
} from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { readArguments } from "./arguments.mjs";

const USAGE = `Usage: npm run test:repeat [-- --times N --concurrency N --busy FILE ...]

Default: every test file that contains a wait.

--times N        runs per file (default: 50)
--concurrency N  files that run at the same time (default: 1)
--busy           run a busy loop on each core`;

const { numberOf, positionals, refuse, values } = readArguments(USAGE, {
  options: {
    busy: { type: "boolean" },
    concurrency: { type: "string", default: "1" },
    times: { type: "string", default: "50" },
  },
  allowPositionals: true,
});
const [concurrency, times] = [numberOf("concurrency"), numberOf("times")];
/** Calls by which a test waits: for a time, an event, a process or a condition. */
const WAITS = /\b(?:createWorld|once|poll|quiet|setTimeout|sleep|useWorld|waitFor\w*)\(/;

const root = join(import.meta.dirname, "..");
const missing = positionals.find((file) => !existsSync(resolve(root, file)));
if (missing !== undefined) refuse(`There is no file "${missing}".`);
const output = join(root, "test-output/repeat");
rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });

const named = new Set(positionals.map((file) => relative(root, resolve(root, file))));
const files = named.size > 0 ? [...named] : waitingFiles();
const loops = values.busy ? startLoops() : [];
process.once("exit", () => loops.forEach((loop) => loop.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));

let [failures, done] = [0, 0];
const waiting = [...files];
const repeatWaiting = async () => {
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    const { failed, seconds } = await repeat(file);
    failures += failed;
    done += 1;
    console.log(`${done}/${files.length} ${file}: ${failed === 0 ? "passed" : `${failed} failed`}, ${seconds} s`);
  }
};
await Promise.all(Array.from({ length: concurrency }, repeatWaiting));
const runs = `${files.length} files, ${times} times each${values.busy ? ", on a busy machine" : ""}`;
console.log(failures === 0 ? `${runs}: no failure` : `${runs}: ${failures} failures, their output is in ${output}`);
process.exit(failures === 0 ? 0 : 1);

function waitingFiles() {
  return readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${name}`)
    .filter((file) => WAITS.test(readFileSync(join(root, file), "utf8")));
}

function startLoops() {
  return Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }),
  );
}

/** Runs the file in one process, which transforms the sources once. A run without a report counts as failed. */
async function repeat(file) {
  // Named by path, because two folders may have files of equal names.
  const log = join(output, `${file.replace(/\.test\.ts$/, "").replaceAll(/[\\/]/g, "-")}.log`);
  const out = openSync(log, "w");
  const begin = performance.now();
  // Gives each file its own folder, so that no file is blamed for a daemon of another file: test/support/no-daemon-left.ts.
  const folder = mkdtempSync(join(tmpdir(), "ccm-"));
  const child = fork(join(root, "scripts/test-repeat/file.mjs"), [file, String(times)], {
    cwd: root,
    env: { ...process.env, TMPDIR: folder },
    stdio: ["ignore", out, out, "ipc"],
  });
  let passed = 0;
  child.on("message", (isPassed) => (passed += isPassed ? 1 : 0));
  const [code] = await once(child, "close");
  const isClean = remove(folder, log);
  // A failure at the end of a file, such as a process left over, counts as one failed run.
  const failed = Math.max(times - passed, code === 0 && isClean ? 0 : 1);
  if (failed === 0) rmSync(log);
  return { failed, seconds: Math.round((performance.now() - begin) / 1000) };
}

/** Returns false if the file has left a mount or a writing process that keeps the folder: a failure of that file alone. */
function remove(folder, log) {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    return true;
  } catch (error) {
    appendFileSync(log, `${String(error)}\n`);
    return false;
  }
}
