/**
 * Runs the tests that `npm test` omits: options of Claude Code, acceptance with it, the page, matrices, attacks, faults,
 * conformance and load. With --full, in large numbers and followed by the mutation check, as in the nightly workflow.
 */
import { spawnSync } from "node:child_process";
import { readArguments } from "./arguments.mjs";

const USAGE = `Usage: npm run test:all [-- --full] [FILE ...]

Every option of Claude Code, the acceptance scripts with it, every view of the page, matrices (of clients, transports and
eras), attacks, faults, conformance and load, through the built server.

--full  all runs of the faults (200 kills of the server, 100 of Claude Code, 200 ends of a daemon), ten minutes of load by
        200 clients, 30 minutes of clients of a daemon that come and go, the unit tests once more with ten times as many
        random cases, and the mutation check (unless FILES are named)`;

const { positionals, values } = readArguments(USAGE, {
  options: { full: { type: "boolean" } },
  allowPositionals: true,
});
const projects = ["claude", "acceptance-real", "page", "matrices", "attacks", "faults", "conformance", "load"].flatMap(
  (name) => ["--project", name],
);
if (values.full) projects.push("--project", "unit");
const full = { AMOUNTS: "full", FAULTS: "full", LOAD: "full" };
const { status } = spawnSync("npx", ["vitest", "run", ...projects, ...positionals], {
  stdio: "inherit",
  env: { ...process.env, ...(values.full && full) },
});
const withMutations = values.full && positionals.length === 0;
const mutations = withMutations
  ? spawnSync("node", ["scripts/test-mutations.mjs"], { stdio: "inherit" })
  : { status: 0 };
process.exit((status === 0 ? mutations.status : status) ?? 1);
