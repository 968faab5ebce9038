import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "../../../src/store/sqlite/connect/driver.ts";

/**
 * Stops a process that uses the store in a home folder with SIGSTOP, but never during a write: a stopped process would keep the
 * lock and block all other writers.
 */
export async function freeze(pid: number, home: string): Promise<void> {
  const database = await openDatabase(join(home, ".local/state/claude-agents-mcp/store.db"));
  try {
    database.exec("PRAGMA busy_timeout = 10000");
    database.exec("BEGIN IMMEDIATE");
    process.kill(pid, "SIGSTOP");
    while (!isStopped(pid)) await sleep(1);
  } finally {
    database.close();
  }
}

function isStopped(pid: number): boolean {
  return /\) T /.test(readFileSync(`/proc/${String(pid)}/stat`, "utf8"));
}
