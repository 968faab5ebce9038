import { link, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { startTime } from "../claude/supervise/tree.ts";
import { NPM_MS, isNpmRunning } from "./npm.ts";

/** Lock for installing a package: one server installs, all others wait. The lock file names its holder. */

const Holder = z.object({ pid: z.int(), startedAt: z.string(), folder: z.string() });
/** `folder` is the installation folder. */
export type Holder = z.infer<typeof Holder>;

/** Maximum age of a lock file without a readable holder, ms. The holder writes the file right after creating it. */
const MAX_UNREADABLE_MS = 5_000;
/** Maximum age of a lock, ms. By then a holder has ended its npm, unless the holder itself is frozen. */
const MAX_HELD_MS = NPM_MS + 300_000;
const MAX_LOCK_BYTES = 10_000;

/** Resolves to true if this process has taken the lock. */
export async function takeLock(file: string, folder: string): Promise<boolean> {
  const holder: Holder = { pid: process.pid, startedAt: (await startTime(process.pid)) ?? "", folder };
  try {
    await writeFile(file, JSON.stringify(holder), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

/** Resolves to `undefined` if there is no lock, or its file is unreadable. */
export async function readHolder(file: string): Promise<Holder | undefined> {
  const text = await readFile(file, "utf8").catch(() => "");
  try {
    return Holder.parse(JSON.parse(text.slice(0, MAX_LOCK_BYTES)));
  } catch {
    return undefined;
  }
}

/** True while `holder` is installing: its server runs, or the npm that the server has left behind. */
export async function isHeld(file: string, holder: Holder | undefined): Promise<boolean> {
  const about = await stat(file).catch(() => undefined);
  if (about === undefined || Date.now() - about.mtimeMs > (holder ? MAX_HELD_MS : MAX_UNREADABLE_MS)) return false;
  return !holder || (await startTime(holder.pid)) === holder.startedAt || isNpmRunning(holder.folder);
}

/**
 * Removes the lock of a dead holder. Resolves to false if another server was faster. If two servers install at once, the first
 * complete folder is used.
 */
export async function breakLock(file: string, dead: Holder | undefined): Promise<boolean> {
  const broken = `${file}.${String(process.pid)}`;
  try {
    await rename(file, broken);
  } catch {
    return false;
  }
  const isOfDead = isDeepStrictEqual(await readHolder(broken), dead);
  // Puts the lock back, because another server has taken it since `dead` was read.
  if (!isOfDead) await link(broken, file).catch(() => undefined);
  await rm(broken, { force: true }).catch(() => undefined);
  return isOfDead;
}
