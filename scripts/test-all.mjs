/**
 * Runs what `npm test` leaves out: matrices, attacks, faults, conformance and load. With --full in their large numbers,
 * which take about an hour; the nightly workflow does that.
 */
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";

const { positionals, values } = parseArgs({
  options: { full: { type: "boolean" }, help: { type: "boolean", short: "h" } },
  allowPositionals: true,
});
if (values.help) {
  console.log(`Usage: npm run test:all [-- --full] [FILE ...]

Matrices (of clients, transports and eras), attacks, faults, conformance and load, through the built server.

--full  all runs of the faults (200 kills of the server, 100 of Claude Code), ten minutes of load by 200 clients,
        and the unit tests once more with ten times as many random cases`);
  process.exit(0);
}
const projects = ["matrices", "attacks", "faults", "conformance", "load"].flatMap((name) => ["--project", name]);
if (values.full) projects.push("--project", "unit");
const full = { AMOUNTS: "full", FAULTS: "full", LOAD: "full" };
const { status } = spawnSync("npx", ["vitest", "run", ...projects, ...positionals], {
  stdio: "inherit",
  env: { ...process.env, ...(values.full && full) },
});
process.exit(status ?? 1);
