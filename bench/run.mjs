/** Runs the benchmarks of docs/benchmarks.md. Needs a build, made by `npm run bench`. */
import { readArguments } from "../scripts/arguments.mjs";
import { BENCHMARKS } from "./benchmarks.mjs";
import { Figures, rowOf } from "./figures.mjs";
import { asJson, asTable } from "./report.mjs";
import { measureBuild, profileServersInto } from "./server.mjs";
import { createWorld } from "./world.mjs";

/** Rounds of a benchmark without `rounds` of its own. */
const ROUNDS = 7;

const USAGE = `Usage: npm run bench -- [names...] [options]

Measures this server against its components, in one run on this machine. Without names: all but the long benchmarks.

  --list          list the benchmarks
  --all           include the long benchmarks
  --rounds <n>    interleaved runs for the medians (default: 7, or as --list says)
  --minutes <n>   duration of the load over HTTP (default: 10)
  --json          print the results as JSON, with every sample
  --dist <folder> measure the servers of this build instead of dist/
  --cpu-prof <f>  let Node write a profile of each server into this folder
  --help          show this help`;

const { numberOf, positionals, refuse, values } = readArguments(USAGE, {
  allowPositionals: true,
  options: {
    all: { type: "boolean", default: false },
    "cpu-prof": { type: "string" },
    dist: { type: "string" },
    json: { type: "boolean", default: false },
    minutes: { type: "string", default: "10" },
    list: { type: "boolean", default: false },
    rounds: { type: "string" },
  },
});

if (values.list) list();
else await main();

function list() {
  const width = Math.max(...BENCHMARKS.map(({ name }) => name.length));
  for (const { about, long, name, rounds } of BENCHMARKS) {
    const marks = [...(long ? ["long"] : []), ...(rounds ? [`${String(rounds)} rounds`] : [])];
    console.log(`${name.padEnd(width)}  ${marks.length > 0 ? `(${marks.join(", ")}) ` : ""}${about}`);
  }
}

async function main() {
  const rounds = values.rounds === undefined ? undefined : numberOf("rounds");
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) refuse(`--minutes is "${values.minutes}": must be a number above 0.`);
  const unknown = positionals.find((wanted) => !BENCHMARKS.some(({ name }) => name === wanted));
  if (unknown !== undefined) refuse(`There is no benchmark "${unknown}": --list names them.`);
  if (values["cpu-prof"] !== undefined) profileServersInto(values["cpu-prof"]);
  if (values.dist !== undefined) measureBuild(values.dist);
  // Exits normally, so that the Agent SDK ends its processes.
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
  const wanted = BENCHMARKS.filter(({ long, name }) =>
    positionals.length > 0 ? positionals.includes(name) : !long || values.all,
  );
  const rows = [];
  for (const benchmark of wanted) rows.push(...(await measure(benchmark, { rounds, minutes })));
  console.log(values.json ? asJson(rows) : asTable(rows));
}

async function measure({ name, rounds = ROUNDS, rows, run }, given) {
  const figures = new Figures();
  const progress = (text) => console.error(`${name}: ${text}`);
  try {
    const world = await createWorld();
    await run({ world, figures, progress, minutes: given.minutes, rounds: given.rounds ?? rounds });
    await world.close();
  } catch (error) {
    console.error(`${name} did not work:`, error);
    process.exitCode = 1;
  }
  return rows.flatMap((row) => rowOf(name, row, figures) ?? []);
}
