/** Clients with a daemon behind them, which the benchmark ends: it would outlive it. */
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { processorTime } from "./processes.mjs";
import { mainProgram } from "./server.mjs";
import { writeUserFile } from "./world.mjs";

const stop = () => [mainProgram(), "daemon", "stop", "--all", "--yes"];

/**
 * Runs the work in this world and ends the daemons that it has started, also when the benchmark is interrupted. The work is given
 * the world.
 */
export async function withDaemons(world, work) {
  const options = { env: world.environment };
  const stopAtExit = () => {
    try {
      execFileSync(process.execPath, stop(), { ...options, stdio: "ignore" });
    } catch {
      // There is none.
    }
  };
  // Before the folder is removed, in which the sockets are.
  process.prependOnceListener("exit", stopAtExit);
  try {
    return await work(world);
  } finally {
    await promisify(execFile)(process.execPath, stop(), options).catch((error) => {
      // Exit code 1: there is none.
      if (error.code !== 1) throw error;
    });
    process.off("exit", stopAtExit);
  }
}

/** The same in a state folder where no daemon and no store has been yet, for servers with these settings. */
export async function withFreshState(world, work, settings = {}) {
  // Short, for sockets have short paths.
  const state = mkdtempSync(join(world.home, "s-"));
  const environment = { ...world.environment, XDG_STATE_HOME: state, XDG_CONFIG_HOME: join(state, "config") };
  writeUserFile(environment.XDG_CONFIG_HOME, settings);
  return withDaemons({ ...world, environment }, work);
}

/** What the daemons of this world report of themselves. */
export async function daemonStatus({ environment: env }) {
  const status = [mainProgram(), "daemon", "status", "--json"];
  const { stdout } = await promisify(execFile)(process.execPath, status, { env });
  return JSON.parse(stdout).daemons;
}

/** The pids of the daemons of this world. */
export async function daemonsIn(world) {
  return (await daemonStatus(world)).map(({ pid }) => pid);
}

/** Processor time that these processes use meanwhile, % of a core. Undefined where the system does not say. */
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
