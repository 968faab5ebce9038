import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AUTOMATIC_DAEMON } from "../world.ts";

/** Fails a run that leaves daemons behind: vitest calls `teardown()` after the last test. */

/** Time that a daemon may take to end, ms. */
const END_MS = 10_000;
/** Path of this checkout: other checkouts may be tested at the same time. */
const CHECKOUT = join(import.meta.dirname, "../../..") + sep;

export async function teardown(): Promise<void> {
  const deadline = Date.now() + END_MS;
  let left = leftDaemons();
  while (left.length > 0 && Date.now() < deadline) {
    await sleep(200);
    left = leftDaemons();
  }
  if (left.length === 0) return;
  // vitest reports the error, but exits with code 0 without `exitCode`.
  process.exitCode = 1;
  throw new Error(`tests have left daemons running:\n${left.join("\n")}`);
}

function leftDaemons(): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((pid) => (/^\d+$/.test(pid) ? described(pid) : []));
}

/** Returns pid, command and folders of a daemon that a client has started in a test's own folder; [] for other processes. */
function described(pid: string): string[] {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").join(" ").trim();
    if (!AUTOMATIC_DAEMON.test(command)) return [];
    const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    const folders = environment.filter((each) => /^(?:HOME|CLAUDE_CONFIG_DIR)=/.test(each));
    const isOfTest = folders.some((each) => each.includes(`=${tmpdir()}${sep}`));
    const isOfCheckout = [command, ...environment].some((each) => each.includes(CHECKOUT));
    return isOfTest && isOfCheckout ? [`${pid}: ${command} (${folders.join(", ")})`] : [];
  } catch {
    // The process ended meanwhile, or belongs to another user.
    return [];
  }
}
