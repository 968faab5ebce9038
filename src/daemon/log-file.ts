import { copyFileSync, fstatSync, ftruncateSync, statSync, truncateSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { logFolder, logPath } from "./start-daemon.ts";

/** Log file of a daemon, which is its stderr. Bounded here, because no other program rotates the file. */

const STDERR = 2;
/** Size at which the log is copied to `LOG.1` and emptied, bytes. */
const MAX_BYTES = 4_194_304;
const LOOK_MS = 5_000;
/** Retention of the logs of ended daemons, ms. */
const KEPT_MS = 604_800_000;

/** Returns the path of the log if stderr is that file, and bounds the file from then on. Otherwise returns `undefined`. */
export function boundOwnLog(stateFolder: string, name: string): string | undefined {
  const log = logPath(stateFolder, name);
  try {
    const [own, file] = [fstatSync(STDERR), statSync(log)];
    if (own.dev !== file.dev || own.ino !== file.ino) return undefined;
  } catch {
    return undefined;
  }
  setInterval(() => truncateIfLarge(log), LOOK_MS).unref();
  return log;
}

/** Truncates the file instead of replacing it, because stderr appends to the open file, and followers notice a shorter file. */
function truncateIfLarge(log: string): void {
  try {
    if (fstatSync(STDERR).size <= MAX_BYTES) return;
    copyFileSync(log, `${log}.1`);
    // Windows cannot truncate through an append-only descriptor.
    if (process.platform === "win32") truncateSync(log, 0);
    else ftruncateSync(STDERR, 0);
  } catch {
    // Disk full or folder deleted: no place is left for a report.
  }
}

/** Removes logs and records older than `KEPT_MS`, except files of `living` daemons. */
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
