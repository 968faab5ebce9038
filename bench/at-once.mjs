import { rawQuery } from "./raw.mjs";
import { processorTime, residentMb } from "./processes.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

/** Limit of concurrent processes, of both sides. */
const PROCESSES = 8;
const COUNTS = [1, 4, 16, 64];
/** Upper bound on rounds: each takes long, and many sessions vary less from run to run. */
const ROUNDS = 3;
const LOOK_MS = 250;

const TASK = prompt(
  { text: "I look.", tools: [{ name: "Bash", input: { command: "seq 20", description: "Count" } }] },
  { text: "Done." },
);

export const atOnce = {
  name: "at-once",
  long: true,
  about: `1 to 64 sessions started at once, on ${String(PROCESSES)} processes`,
  rows: [
    ...COUNTS.map((count) => {
      const bound = count === 64 ? { atMost: 1.15 } : {};
      return { row: `${String(count)} at once`, of: `ours ${String(count)}`, base: raw(count), unit: "ms", ...bound };
    }),
    { row: "64 at once: failed", of: "failed", unit: "sessions", atMostAlone: 0 },
    { row: "64 at once: memory of the server", of: "memory", base: "raw: memory of the program", unit: "MB" },
    { row: "64 at once: processor time of the server", of: "own", base: "of its Claude Codes", unit: "s" },
    {
      row: "64 at once: processor time of all Claude Codes",
      of: "of its Claude Codes",
      base: "raw: of all",
      unit: "s",
    },
  ],
  async run({ figures, progress, rounds, world }) {
    await rawQuery(world, TASK);
    for (const count of COUNTS) {
      for (let round = 1; round <= Math.min(rounds, ROUNDS); round++) {
        progress(`${String(count)} at once, round ${String(round)}`);
        const large = count === COUNTS.at(-1) ? figures : { note: () => undefined };
        await figures.timed(raw(count), async () => rawAtOnce(world, count, large));
        figures.note(`ours ${String(count)}`, await ourAtOnce(world, count, large));
      }
    }
  },
};

function raw(count) {
  return `raw query(), ${String(count)} at once`;
}

async function rawAtOnce(world, count, figures) {
  const before = processorTime(process.pid);
  const memory = watchMemory(process.pid);
  let begun = 0;
  const work = async () => {
    while (begun < count) {
      begun += 1;
      await rawQuery(world, TASK);
    }
  };
  await Promise.all(Array.from({ length: Math.min(PROCESSES, count) }, work));
  figures.note("raw: memory of the program", memory());
  if (before) figures.note("raw: of all", processorTime(process.pid).children - before.children);
}

/** Returns the time until the last session has ended, ms, on a running server that has already had a session. */
async function ourAtOnce(world, count, figures) {
  const server = await startServer(world, ["--max-live", String(PROCESSES)]);
  await first(server);
  const before = processorTime(server.pid);
  const memory = watchMemory(server.pid);
  const began = performance.now();
  const ends = await Promise.allSettled(
    Array.from({ length: count }, async () => server.end(await server.begin(TASK))),
  );
  const ms = performance.now() - began;
  const mine = processorTime(server.pid);
  if (before) figures.note("own", mine.own - before.own);
  figures.note("memory", memory());
  const failed = ends.filter(({ status }) => status === "rejected");
  for (const { reason } of failed.slice(0, 3)) console.error("at-once:", reason);
  figures.note("failed", failed.length);
  const living = world.claudes().map(({ pid }) => processorTime(pid)?.own ?? 0);
  if (before) figures.note("of its Claude Codes", mine.children - before.children + living.reduce((a, b) => a + b, 0));
  await server.close();
  // `quiet` throws if a process is left over.
  await world.quiet();
  return ms;
}

/** Runs a session to load the SDK, and cancels the session so that no process is left. */
async function first(server) {
  const sessionId = await server.begin(TASK);
  await server.end(sessionId);
  await server.call("claude_code_session", { action: "cancel", sessionId });
}

/** Samples memory. The returned function stops the timer and returns the peak, MB. */
function watchMemory(pid) {
  let most = residentMb(pid);
  const timer = setInterval(() => (most = Math.max(most ?? 0, residentMb(pid) ?? 0)), LOOK_MS);
  return () => {
    clearInterval(timer);
    return most;
  };
}
