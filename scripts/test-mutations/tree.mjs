// A copy of the tree, in which faults are put and tests run: the tree itself is never changed.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Time limit of a run. It is several times the duration without a fault: a run that exceeds it hangs because of the fault. */
const RUN_MS = 3 * 60_000;
const FILE_MS = { unit: 10_000, others: 2 * 60_000 };

function limitOf(files) {
  return files.reduce((ms, file) => ms + (isUnit(file) ? FILE_MS.unit : FILE_MS.others), RUN_MS);
}

function isUnit(file) {
  return file.startsWith("test/unit/");
}

export class Tree {
  #root;
  #folder;
  #isBuilt = false;

  constructor(root, folder) {
    this.#root = root;
    this.#folder = folder;
    rmSync(folder, { recursive: true, force: true });
    const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
    for (const file of listed.toString("utf8").split("\0").filter(Boolean)) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      cpSync(join(root, file), join(folder, file));
    }
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  }

  /** Inserts the fault until `mend` is called. */
  break({ becomes, end, file, start }) {
    const text = readFileSync(join(this.#root, file), "utf8");
    writeFileSync(join(this.#folder, file), text.slice(0, start) + becomes + text.slice(end));
    this.#isBuilt = false;
  }

  mend({ file }) {
    cpSync(join(this.#root, file), join(this.#folder, file));
    this.#isBuilt = false;
  }

  /** Runs test files up to the first failure. Resolves with `{ ok, passed, failed }`, the tests as `{ file, name }`. */
  async test(files) {
    if (!this.#isBuilt && !files.every((file) => isUnit(file))) {
      const built = await this.#run("node", ["scripts/build.mjs"], RUN_MS);
      if (built.code !== 0) throw new Error(`the tree does not build:\n${built.output}`);
      this.#isBuilt = true;
    }
    const report = join(this.#folder, "test-report.json");
    rmSync(report, { force: true });
    const projects = [...new Set(files.map((file) => file.split("/")[1]))].flatMap((name) => ["--project", name]);
    const reporting = ["--reporter", "json", "--outputFile", report, "--bail", "1"];
    const run = ["node_modules/vitest/vitest.mjs", "run", ...projects, ...reporting, ...files];
    const { code } = await this.#run("node", run, limitOf(files));
    return { ok: code === 0, ...this.#read(report) };
  }

  #read(report) {
    let results;
    try {
      results = JSON.parse(readFileSync(report, "utf8")).testResults;
    } catch {
      return { passed: [], failed: [] };
    }
    const passed = [];
    const failed = [];
    for (const { assertionResults, message, name, status } of results) {
      const file = name.slice(this.#folder.length + 1);
      for (const test of assertionResults) {
        const told = { file, name: test.fullName };
        if (test.status === "passed") passed.push(told);
        if (test.status === "failed") failed.push(told);
      }
      // No test of the file ran: it cannot be loaded, or its `beforeAll` has failed.
      const isBroken = status === "failed" && !assertionResults.some((test) => test.status === "failed");
      if (isBroken && message) failed.push({ file, name: "(the file)" });
    }
    return { passed, failed };
  }

  async #run(program, args, ms) {
    const env = { ...process.env, CI: "true", NO_COLOR: "1" };
    const child = spawn(program, args, { cwd: this.#folder, detached: true, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    const timer = setTimeout(() => process.kill(-Number(child.pid), "SIGKILL"), ms);
    const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
    clearTimeout(timer);
    return { code, output: output.slice(-4000) };
  }
}
