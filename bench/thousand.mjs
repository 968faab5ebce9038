import { setTimeout as sleep } from "node:timers/promises";

import { childrenOf, openHandles, residentMb } from "./processes.mjs";
import { rawQuery } from "./raw.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const SESSIONS = 1_000;
const PROCESSES = 8;
/** Number of raw processes, enough to measure the time of each. */
const RAW = 48;
/** Callers that wait concurrently. */
const WAITING = 16;
const SETTLE_MS = 3_000;

const ASK = prompt({ text: "hi" });
const BASE = `raw query(), ${String(PROCESSES)} at a time: each`;
const BEFORE = "after the first session";

export const thousand = {
  name: "thousand",
  long: true,
  about: `1,000 sessions requested at once, on ${String(PROCESSES)} processes; memory and handles left in the server`,
  rows: [
    { row: "1,000 sessions: each", of: "each", base: BASE, unit: "ms" },
    { row: "sessions that failed", of: "failed", unit: "sessions", atMostAlone: 0 },
    { row: "memory of the server after them", of: "memory", base: `memory ${BEFORE}`, unit: "MB", atMostMore: 40 },
    { row: "open handles of the server after them", of: "handles", base: `handles ${BEFORE}`, unit: "", atMostMore: 0 },
    { row: "child processes of the server after them", of: "children", unit: "", atMostAlone: 0 },
  ],
  async run({ figures, progress, world }) {
    await rawQuery(world, ASK);
    progress(`${String(RAW)} raw ones`);
    figures.note(BASE, (await pool(PROCESSES, RAW, async () => rawQuery(world, ASK))) / RAW);
    const server = await startServer(world, ["--max-live", String(PROCESSES), "--idle-process-ms", "2000"]);
    await server.end(await server.begin(ASK));
    await atRest(server);
    note(figures, server, ` ${BEFORE}`);
    const began = performance.now();
    const ids = await Promise.all(Array.from({ length: SESSIONS }, async () => server.begin(ASK)));
    let failed = 0;
    await pool(WAITING, SESSIONS, async (index) => {
      if (index % 50 === 0) progress(`${String(index)} of ${String(SESSIONS)} have ended`);
      await server.end(ids[index]).catch((error) => {
        failed += 1;
        progress(String(error));
      });
    });
    figures.note("each", (performance.now() - began) / SESSIONS);
    figures.note("failed", failed);
    await atRest(server);
    note(figures, server, "");
    figures.note("children", childrenOf(server.pid).length);
    await server.close();
  },
};

/** Runs `work` for each index below `count`, at most `width` at a time. Resolves to the duration, ms. */
async function pool(width, count, work) {
  const began = performance.now();
  let begun = 0;
  const worker = async () => {
    while (begun < count) {
      begun += 1;
      await work(begun - 1);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return performance.now() - began;
}

async function atRest(server) {
  while (childrenOf(server.pid).length > 0) await sleep(200);
  await sleep(SETTLE_MS);
}

function note(figures, { pid }, when) {
  figures.note(`memory${when}`, residentMb(pid));
  figures.note(`handles${when}`, openHandles(pid));
}
