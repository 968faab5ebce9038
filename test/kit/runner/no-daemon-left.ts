import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AUTOMATIC_DAEMON } from "../world.ts";

/** The suite ends the daemons that its clients have started: vitest calls teardown() after the last test. */

/** A daemon that was told to end may take a moment, ms. */
const END_MS = 10_000;
/** Of this checkout: other checkouts may be tested at the same time. */
const CHECKOUT = join(import.meta.dirname, "../../..") + sep;

export async function teardown(): Promise<void> {
  const deadline = Date.now() + END_MS;
  let left = leftDaemons();
  while (left.length > 0 && Date.now() < deadline) {
    await sleep(200);
    left = leftDaemons();
  }
  if (left.length === 0) return;
  // vitest reports an error here, and ends well all the same.
  process.exitCode = 1;
  throw new Error(`tests have left daemons running:\n${left.join("\n")}`);
}

function leftDaemons(): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((pid) => (/^\d+$/.test(pid) ? described(pid) : []));
}

/** A daemon that a client has started in a test's own folder: its pid, command and folders. */
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
    // It ended while we looked, or is not ours.
    return [];
  }
}
