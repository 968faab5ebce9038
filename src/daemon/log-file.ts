import { copyFileSync, fstatSync, ftruncateSync, statSync, truncateSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { logFolder, logOf } from "./start.ts";

/** The log file that a daemon's stderr is: bounded, because no other program rotates it. */

const STDERR = 2;
/** The older half is kept beside it. Bytes. */
const MAX_BYTES = 4_194_304;
const LOOK_MS = 5_000;
/** Logs of daemons that have ended, ms. */
const KEPT_MS = 604_800_000;

/** The path of the log where stderr is that file, which is bounded from then on; undefined where stderr is something else. */
export function ownLog(stateFolder: string, name: string): string | undefined {
  const log = logOf(stateFolder, name);
  try {
    const [own, file] = [fstatSync(STDERR), statSync(log)];
    if (own.dev !== file.dev || own.ino !== file.ino) return undefined;
  } catch {
    return undefined;
  }
  setInterval(() => bound(log), LOOK_MS).unref();
  return log;
}

/** Emptied, not replaced: it is open for appending, and what reads along sees that it has become shorter. */
function bound(log: string): void {
  try {
    if (fstatSync(STDERR).size <= MAX_BYTES) return;
    copyFileSync(log, `${log}.1`);
    // Windows cannot shorten a file through a descriptor that only appends.
    if (process.platform === "win32") truncateSync(log, 0);
    else ftruncateSync(STDERR, 0);
  } catch {
    // A full disk, or a deleted folder: there is nowhere to say so.
  }
}

/** Removes the logs of daemons that have been gone for long. */
export async function sweepLogs(stateFolder: string, living: readonly string[]): Promise<void> {
  const folder = logFolder(stateFolder);
  for (const file of await readdir(folder).catch(() => [])) {
    const [, name] = /^daemon-(.+)\.(?:log(?:\.1)?|running(?:\.\d+)?)$/.exec(file) ?? [];
    if (name === undefined || living.includes(name)) continue;
    const path = join(folder, file);
    const { mtimeMs = Date.now() } = (await stat(path).catch(() => undefined)) ?? {};
    if (Date.now() - mtimeMs > KEPT_MS) await rm(path, { force: true });
  }
}
