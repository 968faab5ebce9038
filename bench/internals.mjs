/**
 * Fills a store faster than sessions can run, through the store's own port. Compiled from the sources, because the layout of
 * the built program is private. No other benchmark uses internals.
 */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** Concurrent writes that share a commit, and events per commit. */
const [SESSIONS_AT_ONCE, EVENTS_AT_ONCE] = [500, 2_000];

/** Creates a store in `world` with `sessions` idle sessions, the last with a log of `events`. Returns the file and the ids. */
export async function filledStore(world, { events = 0, progress, sessions }) {
  const { connect, initialState } = await storesOf(world);
  const file = newFile(world);
  const store = await connect({ kind: "sqlite", file });
  const ids = await fill(store, { cwd: world.home, events, initialState, progress, sessions });
  await store.close();
  return { file, ids };
}

export function newFile(world) {
  return join(mkdtempSync(join(world.home, "store-")), "store.db");
}

/** Returns `connect` to open a store as a node of its own, and the first state of a session. */
export async function storesOf(world) {
  const { initialState, openStore } = await compiled(world);
  const connect = async (location) => {
    const store = openStore(location, self());
    await store.leases.heartbeat(600_000);
    return store;
  };
  return { connect, initialState };
}

/** Adds `sessions` idle sessions, the last with a log of `events`. Returns the ids. */
export async function fill(store, { cwd, events, initialState, progress, sessions }) {
  const ids = Array.from({ length: sessions }, () => randomUUID());
  const create = async (id) => {
    const at = Date.now();
    const spec = { cwd };
    await store.rows.create({ id, principal: "local", spec, state: { ...initialState(at), lastOutcome: "done" }, at });
  };
  for (let done = 0; done < ids.length; done += SESSIONS_AT_ONCE) {
    if (done % 20_000 === 0) progress(`stored ${String(done)} of ${String(sessions)} sessions`);
    await Promise.all(ids.slice(done, done + SESSIONS_AT_ONCE).map(create));
  }
  if (events > 0) await fillLog(store, ids.at(-1), events, progress);
  return ids;
}

async function fillLog(store, id, total, progress) {
  const lease = await store.leases.claim(id);
  const { state } = await store.rows.get(id);
  for (let last = EVENTS_AT_ONCE; last <= total; last += EVENTS_AT_ONCE) {
    const events = Array.from({ length: EVENTS_AT_ONCE }, (_, n) => said(last - EVENTS_AT_ONCE + n + 1));
    await store.log.append(lease, { events, at: Date.now(), state: { ...state, lastEventId: last } });
    if (last % 200_000 === 0) progress(`stored ${String(last)} of ${String(total)} events`);
  }
  await store.leases.release(lease);
}

/** Returns an event of the size of a typical message of Claude Code with its metadata. */
export function said(id) {
  const text = `This is what Claude Code says in event ${String(id)}, and it is as long as a sentence is.`;
  const content = [{ type: "text", text }];
  const message = { type: "assistant", uuid: randomUUID(), message: { role: "assistant", content } };
  return { type: "message", data: { message } };
}

function self() {
  const silent = () => undefined;
  return {
    nodeId: randomUUID(),
    process: { pid: process.pid, startedAt: "now" },
    isRunning: () => Promise.resolve(true),
    clock: { now: () => Date.now(), tick: () => performance.now() },
    log: { debug: silent, info: silent, warn: silent, error: silent },
  };
}

async function compiled(world) {
  const folder = mkdtempSync(join(world.home, "built-"));
  const compiler = join("node_modules", "typescript", "bin", "tsc");
  execFileSync(process.execPath, [compiler, "-p", "tsconfig.build.json", "--noCheck", "--outDir", folder]);
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
  const { openStore } = await import(pathToFileURL(join(folder, "store", "open.js")).href);
  const { initialState } = await import(pathToFileURL(join(folder, "domain", "session.js")).href);
  return { initialState, openStore };
}
