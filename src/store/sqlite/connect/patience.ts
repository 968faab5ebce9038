import { setTimeout as sleep } from "node:timers/promises";
import { isBusy } from "./driver.ts";

/** How long others are waited for, ms. SQLite's own wait is short: it would hold up everything else in this process. */
const PATIENCE_MS = 10_000;
const [FIRST_WAIT_MS, MAX_WAIT_MS] = [4, 100];

/** Tries again while another connection is in the way; what it throws at last is the busy error. */
export async function patiently<T>(attempt: () => T | Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
    try {
      return await attempt();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
    }
    // At a random time: those who were refused together must not come again together.
    await sleep(wait * (0.5 + Math.random()));
  }
}
