/** Runs the tests that `npm test` omits. With --full, in large numbers, as the nightly workflow does. */
import { spawnSync } from "node:child_process";
import { readArguments } from "./arguments.mjs";

const USAGE = `Usage: npm run test:all [-- --full] [FILE ...]

Every option of Claude Code, the acceptance scripts with it, every view of the page, several machines, matrices (of clients,
transports and eras), attacks, faults, conformance and load, through the built server. POSTGRES=skip skips the tests that need
PostgreSQL.

--full  all runs of the faults (200 kills of the server, 100 of Claude Code, 200 ends of a daemon), the unit tests once more
        with ten times as many random cases, then ten minutes of load by 200 clients and 30 minutes of clients of a daemon
        that come and go`;

const { positionals, values } = readArguments(USAGE, {
  options: { full: { type: "boolean" } },
  allowPositionals: true,
});
const { full = false } = values;

/** Returns the exit code of one run of vitest. */
function run(args, env) {
  const { status } = spawnSync("npx", ["vitest", "run", ...args], {
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  return status ?? 1;
}

const NAMES = ["slow", "machines", "claude", "browser"];
const PROJECTS = [...NAMES.flatMap((name) => ["--project", name]), "--exclude", "test/browser/**"];
if (!full) process.exit(run([...PROJECTS, ...positionals]));
// Load for many minutes runs alone: clients that wait for the processor run into their own time-outs.
const LOAD = "test/load";
const env = { AMOUNTS: "full", FAULTS: "full", LOAD: "full" };
const [load, others] = [
  positionals.filter((file) => file.startsWith(LOAD)),
  positionals.filter((file) => !file.startsWith(LOAD)),
];
const isAll = positionals.length === 0;
const codes = [];
if (isAll || others.length > 0) {
  codes.push(run([...PROJECTS, "--project", "unit", "--exclude", `${LOAD}/**`, ...others], env));
}
if (isAll || load.length > 0) codes.push(run(["--project", "slow", ...(isAll ? [LOAD] : load)], env));
process.exit(Math.max(...codes));
