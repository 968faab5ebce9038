/**
 * Load over HTTP: many clients with long polls, and sessions that run turn after turn on few processes. Afterwards compares the
 * events that the clients received with the stored logs.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { childrenOf, openHandles, processorTime } from "../processes.mjs";
import { KINDS } from "./clients.mjs";
import { Counts } from "./counts.mjs";
import { Driver } from "./driver.mjs";
import { compare } from "./log.mjs";
import { thirdsOf, watchMemory } from "./memory.mjs";
import { startOverHttp } from "./server.mjs";
import { Watcher } from "./watcher.mjs";

/** Every `SEVERAL_EVERY`-th watcher follows `SEVERAL` sessions by one call. */
const [SEVERAL, SEVERAL_EVERY] = [10, 10];
/** Every `RESTLESS_EVERY`-th watcher drops its first poll, and then one in `LEAVES_ONE_IN`; every `SLOW_EVERY`-th reads slowly. */
const [RESTLESS_EVERY, LEAVES_ONE_IN] = [8, 4];
const SLOW_EVERY = 16;
/** Every `NEWS_EVERY`-th watcher is woken only by events on which a caller must act. */
const NEWS_EVERY = 5;
const LOGS_AT_ONCE = 4;
/** Time after the last client has left for keep-alive connections and processes of sessions to end, ms. */
const REST_MS = 20_000;

/** Maximum extension of a short load, ms. */
const MORE_MS = 60_000;

/** Rate limit above the demand of these clients, so that any refusal is a fault. */
const LIMITS = ["--rate-limit", "1000000"];
/** The drivers approve commands as well as edits. */
const APPROVING = ["--caller-approves", "all"];

/**
 * Runs `clients` clients for `forMs`: one drives each of `sessions`, the others follow the sessions, by polls of `waitMs` (20 s
 * by default). The last turns are interrupted. Resolves to the results to judge; a client with an unrecoverable error is in
 * `counts.failed`.
 */
export async function load(given) {
  const { maxLive, progress, world } = given;
  const flags = ["--max-live", String(maxLive), "--idle-process-ms", "2000", ...LIMITS, ...APPROVING];
  const server = await startOverHttp(world, flags);
  await oneTurn(world, server);
  await atRest(server);
  const before = { handles: openHandles(server.pid), cpu: processorTime(server.pid) };
  const began = performance.now();
  const { counts, drivers, samples, watchers } = await underLoad({ ...given, server });
  const seconds = (performance.now() - began) / 1000;
  const cpu = processorTime(server.pid);
  progress("the clients have left");
  await atRest(server, before.handles);
  const outcome = {
    counts,
    seconds,
    turns: totalOf(drivers, "turns"),
    asked: totalOf(drivers, "asked"),
    twice: totalOf(watchers, "twice"),
    logs: await compareLogs(server, drivers, watchers),
    thirds: thirdsOf(samples),
    cpuSeconds: before.cpu && cpu.own - before.cpu.own,
    handlesMore: before.handles === undefined ? undefined : openHandles(server.pid) - before.handles,
    children: childrenOf(server.pid).length,
    complaints: server.complaints,
  };
  const exitCode = await server.stop();
  // `quiet` throws if a process is left over.
  await world.quiet();
  return { ...outcome, exitCode };
}

function totalOf(all, field) {
  return all.reduce((total, each) => total + each[field], 0);
}

/** Loads everything that a first session loads. */
async function oneTurn(world, { door }) {
  const driver = new Driver({ counts: new Counts(), cwd: world.folder(), door, kind: "raw modern" });
  await driver.begin();
  await driver.drive(1);
}

async function underLoad({ clients, forMs, progress, server, sessions, waitMs, world }) {
  const { door } = server;
  const counts = new Counts();
  const drivers = Array.from({ length: sessions }, (_, index) => {
    return new Driver({ counts, cwd: world.folder(), door, kind: KINDS[index % KINDS.length] });
  });
  const ids = await Promise.all(drivers.map(async (driver) => driver.begin()));
  const shared = { counts, door, ids, waitMs };
  const watchers = Array.from({ length: clients - sessions }, (_, index) => watcherOf(index, shared));
  const failing = (error) => void counts.note(error);
  const following = watchers.map(async (each) => each.follow().catch(failing));
  const driving = drivers.map(async (each) => each.drive().catch(failing));
  // Samples memory only after all clients have started, and before they leave one by one.
  const memory = watchMemory(server);
  for (let left = forMs; left > 0 && counts.failed.length === 0; left -= 10_000) {
    await sleep(Math.min(left, 10_000));
    progress(
      `${String(counts.calls)} calls, ${String(counts.events)} events seen, ${String(Math.round(left / 1000))} s to go`,
    );
  }
  // Goes on where a slow machine has not done enough to judge.
  const isEnough = () => totalOf(drivers, "turns") > 0 && totalOf(drivers, "asked") > 0 && counts.vanished > 0;
  for (let left = MORE_MS; left > 0 && !isEnough() && counts.failed.length === 0; left -= 500) await sleep(500);
  const samples = await memory();
  await Promise.all(drivers.map(async (each) => each.leave().catch(failing)));
  await ended(driving, "sessions still at their last turn", progress);
  for (const each of watchers) each.leave();
  await ended(following, "clients still reading", progress);
  return { counts, drivers, samples, watchers };
}

/** Waits for all clients, and logs every 10 s how many are left. */
async function ended(works, what, progress) {
  let left = works.length;
  for (const work of works) void work.then(() => (left -= 1));
  const timer = setInterval(() => progress(`${String(left)} ${what}`), 10_000);
  await Promise.all(works);
  clearInterval(timer);
}

function watcherOf(index, { counts, door, ids, waitMs }) {
  const isSeveral = index % SEVERAL_EVERY === 0;
  const own = Array.from({ length: isSeveral ? SEVERAL : 1 }, (_, n) => ids[(index + n) % ids.length]);
  const isRestless = index % RESTLESS_EVERY === 1;
  const isSlow = index % SLOW_EVERY === 2;
  let hasLeft = false;
  const habits = {
    waitMs,
    until: index % NEWS_EVERY === 3 ? "news" : "event",
    vanishes: () => {
      if (!isRestless || (hasLeft && Math.random() * LEAVES_ONE_IN >= 1)) return undefined;
      hasLeft = true;
      return 20 + Math.random() * 1_500;
    },
    rests: () => (isSlow ? 1_000 + Math.random() * 2_000 : 0),
    readLate: () => (isSlow ? 500 : 0),
  };
  return new Watcher({ counts, door, habits, kind: KINDS[index % KINDS.length], sessions: [...new Set(own)] });
}

/**
 * Sums over all sessions the gaps of the log, and the events that watchers missed, received changed, or received although not
 * stored.
 */
async function compareLogs(server, drivers, watchers) {
  const sum = { events: 0, holes: 0, missed: 0, changed: 0, invented: 0 };
  const left = drivers.map(({ sessionId }) => sessionId);
  const worker = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) {
      const events = await server.log(id);
      const own = watchers.flatMap(({ seen }) => seen.get(id) ?? []);
      const found = { events: events.length, ...compare(events, own) };
      for (const [name, count] of Object.entries(found)) sum[name] += count;
    }
  };
  await Promise.all(Array.from({ length: LOGS_AT_ONCE }, worker));
  return sum;
}

/** Waits until no process is left and no more handles are open than before, at most `REST_MS`. */
async function atRest({ pid }, handles = Number.POSITIVE_INFINITY) {
  const deadline = performance.now() + REST_MS;
  const isAtRest = () => childrenOf(pid).length === 0 && (openHandles(pid) ?? 0) <= handles;
  while (!isAtRest() && performance.now() < deadline) await sleep(200);
}
