import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { daemonsIn, shareOfCore, withDaemons, withFreshState } from "./daemons.mjs";
import { proxyProgram, startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const ASK = prompt({ text: "hi" });
const IDLE_MS = 60_000;
/** Measured time, ms. With its start, shorter than the longest wait of a check. */
const BUSY_MS = 20_000;
/** Time for started and ended processes to settle, ms. */
const SETTLED_MS = 10_000;
/**
 * Time for a spare to settle, ms. A fresh Claude Code uses 0.35 % of a core in its first half minute, and 0.08 % afterwards.
 */
const SPARE_SETTLED_MS = 45_000;
const MANY = 20;
/**
 * Busy session: number of tool calls in each answer of the model (two events per call), pause before an answer in ms, and
 * number of answers. Yields about 100 events a second; a row has the actual number.
 */
const [CALLS, PAUSE_MS, ANSWERS] = [20, 100, 200];

const ONE = "1 proxy that waits";

export const daemonWaiting = {
  name: "daemon-waiting",
  long: true,
  rounds: 3,
  about: "processor time of an idle daemon, and of a daemon whose clients wait beside a busy session",
  rows: [
    { row: "idle daemon and its spare, of a core", of: "idle", unit: "%", atMostAlone: 0.2 },
    { row: `daemon and ${String(MANY)} proxies that wait`, of: "many", base: ONE, unit: "% of a core", atMostMore: 10 },
    { row: "events of the busy session", of: "events/s", unit: "per s" },
  ],
  async run({ figures, progress, rounds, world }) {
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      await withFreshState(world, async (fresh) => figures.note("idle", await idle(fresh)), { spares: 1 });
      await withDaemons(world, async () => {
        figures.note(ONE, await waiting(world, 1, figures));
        figures.note("many", await waiting(world, MANY, figures));
      });
    }
  },
};

/** Measures the daemon, its helper processes, and the spare of an ended session, without a connected client. */
async function idle(world) {
  const server = await startServer(world, [], proxyProgram);
  const sessionId = await server.begin(ASK);
  await server.end(sessionId);
  await server.call("claude_code_session", { action: "cancel", sessionId });
  await server.close();
  await sleep(SPARE_SETTLED_MS);
  const claudes = world.claudes().map(({ pid }) => pid);
  if (claudes.length === 0) throw new Error("there is no spare");
  return shareOfCore([...(await daemonsIn(world)), ...claudes], IDLE_MS);
}

/** Measures the daemon and proxies that wait for a session without events, beside a busy session. */
async function waiting(world, count, figures) {
  const owner = await startServer(world, [], proxyProgram);
  const cwd = world.folder();
  writeFileSync(join(cwd, "file.txt"), "one line\n");
  const gate = randomUUID();
  const quiet = await owner.begin(prompt({ gate, text: "done" }));
  const proxies = [];
  for (let number = 0; number < count; number++) proxies.push(await startServer(world, [], proxyProgram));
  const pids = [...(await daemonsIn(world)), ...proxies.map(({ pid }) => pid)];
  const busy = await owner.begin(busyTurn(cwd), { cwd });
  await sleep(SETTLED_MS);
  const { nextCursor: cursor } = await look(owner, quiet);
  const wait = { action: "poll", sessionId: quiet, cursor, until: "event", waitMs: 45_000 };
  const waits = proxies.map(async (proxy) => proxy.call("claude_code_check", wait));
  const before = await look(owner, busy);
  const began = performance.now();
  const share = await shareOfCore(pids, BUSY_MS);
  const { nextCursor, status } = await look(owner, busy);
  if (status !== "running") throw new Error("the busy session has ended before the measurement");
  figures.note("events/s", (1_000 * (nextCursor - before.nextCursor)) / (performance.now() - began));
  // Opens the gate without a `mark`, because the quiet session reached its gate long ago, and the model has forgotten the
  // request over all requests of the busy session.
  await world.open({ gate });
  await Promise.all(waits);
  for (const sessionId of [busy, quiet]) await owner.call("claude_code_session", { action: "cancel", sessionId });
  for (const each of [...proxies, owner]) await each.close();
  return share;
}

function busyTurn(cwd) {
  const tools = Array.from({ length: CALLS }, () => ({ name: "Read", input: { file_path: join(cwd, "file.txt") } }));
  return prompt(...Array.from({ length: ANSWERS }, () => ({ delayMs: PAUSE_MS, tools })), { text: "done" });
}

/** Returns the end of the session's log, as `nextCursor`. */
function look(server, sessionId) {
  return server.call("claude_code_check", { action: "poll", sessionId, cursor: 1e9, waitMs: 0, maxEvents: 1 });
}
