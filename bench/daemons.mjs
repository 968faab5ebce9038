/** Clients with a daemon behind them. The benchmark ends the daemon, which would otherwise outlive the benchmark. */
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { processorTime } from "./processes.mjs";
import { mainProgram } from "./server.mjs";
import { writeUserFile } from "./world.mjs";

const stop = () => [mainProgram(), "daemon", "stop", "--all", "--yes"];

/** Calls `work` with `world`, and then ends the daemons started by `work`, even if the benchmark is interrupted. */
export async function withDaemons(world, work) {
  const options = { env: world.environment };
  const stopAtExit = () => {
    try {
      execFileSync(process.execPath, stop(), { ...options, stdio: "ignore" });
    } catch {
      // No daemon runs.
    }
  };
  // Prepended, so that the daemons end before the folder with their sockets is removed.
  process.prependOnceListener("exit", stopAtExit);
  try {
    return await work(world);
  } finally {
    await promisify(execFile)(process.execPath, stop(), options).catch((error) => {
      // Exit code 1: no daemon runs.
      if (error.code !== 1) throw error;
    });
    process.off("exit", stopAtExit);
  }
}

/** Does as `withDaemons`, in a fresh state folder without daemon and store, for servers with `settings`. */
export async function withFreshState(world, work, settings = {}) {
  // Short, because the paths of sockets must be short.
  const state = mkdtempSync(join(world.home, "s-"));
  const environment = { ...world.environment, XDG_STATE_HOME: state, XDG_CONFIG_HOME: join(state, "config") };
  writeUserFile(environment.XDG_CONFIG_HOME, settings);
  return withDaemons({ ...world, environment }, work);
}

/** Returns the status of each daemon of `world`. */
export async function daemonStatus({ environment: env }) {
  const status = [mainProgram(), "daemon", "status", "--json"];
  const { stdout } = await promisify(execFile)(process.execPath, status, { env });
  return JSON.parse(stdout).daemons;
}

/** Returns the pids of the daemons of `world`. */
export async function daemonsIn(world) {
  return (await daemonStatus(world)).map(({ pid }) => pid);
}

/**
 * Returns the processor time that the processes use within `ms`, % of a core. `undefined` if the system does not report
 * processor time.
 */
export async function shareOfCore(pids, ms) {
  const began = performance.now();
  const before = used(pids);
  await sleep(ms);
  const seconds = (performance.now() - began) / 1_000;
  return before === undefined ? undefined : (100 * (used(pids) - before)) / seconds;
}

function used(pids) {
  const times = pids.map((pid) => processorTime(pid)?.own);
  return times.includes(undefined) ? undefined : times.reduce((sum, seconds) => sum + seconds, 0);
}
